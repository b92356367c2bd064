// SPDX-License-Identifier: BSD-3-Clause
// Graphs made by hand and planned without a device, for tests of the graph layer and of operators.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "graph/memory_plan.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "graph/planner.h"
#include "pte/graph.h"

namespace ptero::graph::testing {

using Dims = std::vector<uint32_t>;

// Adds values and calls in the order of its methods. What a test leaves unsaid is float32 and in
// memory of its own. All methods that add a value return its id.
class GraphBuilder {
 public:
  uint32_t add(pte::GraphValue value);  // scalars, strings, SymInt, Null

  uint32_t tensor(Dims dims, pte::GraphDtype dtype = pte::GraphDtype::float32);
  uint32_t in_memory(uint32_t memory_id, Dims dims,
                     pte::GraphDtype dtype = pte::GraphDtype::float32);
  // Zeros. Constants of one key are tied; without a key the bytes are inline.
  uint32_t constant(std::string key, Dims dims, pte::GraphDtype dtype = pte::GraphDtype::float32);
  uint32_t integers(std::vector<int64_t> items);
  uint32_t list(std::vector<uint32_t> ids);

  // Also a graph input.
  uint32_t input(Dims dims, pte::GraphDtype dtype = pte::GraphDtype::float32);

  // `args` ends with what the call produces.
  void call(std::string name, std::vector<uint32_t> args);
  void inputs(std::vector<uint32_t> ids) { graph_.inputs = std::move(ids); }
  void outputs(std::vector<uint32_t> ids) { graph_.outputs = std::move(ids); }

  pte::GraphTensor& tensor_at(uint32_t id);
  const pte::Graph& graph() const { return graph_; }

 private:
  pte::Graph graph_;
};

// WebGPU's default limits, no optional feature.
DeviceFacts default_device();

// A graph with its memory plan and planner.
struct Planned {
  pte::Graph graph;
  MemoryPlan memory;
  std::shared_ptr<const Plan> plan;
  ScalarValues scalars;

  // Command i; a test that asks for another kind fails.
  const PlannedDispatch& dispatch(size_t i) const;
  const PlannedCopy& copy(size_t i) const;
};

// Plans once, for these live shapes of the graph's tensor inputs; empty: the largest.
Result<Planned> plan_graph(const GraphBuilder& builder, const OperatorRegistry& operators,
                           std::vector<Shape> live = {});

}  // namespace ptero::graph::testing
