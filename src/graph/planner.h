// SPDX-License-Identifier: BSD-3-Clause
// From live input shapes to a Plan, and the memory of plans made before.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/memory_plan.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "graph/plan.h"
#include "pte/graph.h"

namespace ptero::graph {

// What one call brings: shapes of the tensor inputs and values of the SymInt inputs, in the order
// of pte::Graph::inputs; the other member of an entry is ignored.
struct LiveInput {
  Shape shape;
  int64_t scalar = 0;

  bool operator==(const LiveInput&) const = default;
};

// Plans graphs and remembers the plans: a call with shapes and scalars that were met before
// returns the same Plan without calling any operator function. Threads: one at a time. The graph,
// memory plan and registry outlive it.
class Planner {
 public:
  // At most `capacity` plans are kept, the least recently used is dropped first.
  Planner(const pte::Graph& graph, const MemoryPlan& memory, const OperatorRegistry& operators,
          DeviceFacts device, size_t capacity = 64);

  // Errors: invalid_argument when the inputs do not fit the graph (rank, bounds, a dimension of
  // 0), and whatever an operator says, with the call's number and name as context.
  Result<std::shared_ptr<const Plan>> plan(std::span<const LiveInput> inputs);

  // The largest inputs that the graph takes.
  Result<std::vector<LiveInput>> largest_inputs() const;

  // How often an operator function was called, for tests and reports.
  uint64_t operator_calls() const { return operator_calls_; }
  size_t remembered() const { return remembered_.size(); }

 private:
  struct Remembered {
    std::vector<LiveInput> inputs;
    std::shared_ptr<const Plan> plan;
  };

  Status check_inputs(std::span<const LiveInput> inputs) const;
  // The members that count: a shape or a scalar.
  std::vector<LiveInput> key_of(std::span<const LiveInput> inputs) const;
  Result<std::shared_ptr<const Plan>> make(std::span<const LiveInput> inputs);

  const pte::Graph& graph_;
  const MemoryPlan& memory_;
  const OperatorRegistry& operators_;
  DeviceFacts device_;
  size_t capacity_;
  std::list<Remembered> remembered_;  // most recently used first
  uint64_t operator_calls_ = 0;
};

}  // namespace ptero::graph
