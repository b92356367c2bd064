// SPDX-License-Identifier: BSD-3-Clause
// A loaded graph: what the file says, where everything lives, and the weights on the device.
// Immutable and shared by sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "graph/memory_plan.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "graph/pass.h"
#include "pte/graph.h"

namespace ptero::graph {

// A device as planning sees it, with what the user asks for.
DeviceFacts device_facts(const gpu::Device& device, PlanOptions options = {});

class GraphModel {
 public:
  // Rewrites the graph by `passes`, places the values and uploads the constants, some MiB with each
  // advance(). `operators` outlives the model. Errors: unsupported (an
  // operator, or a weight that no buffer of the device holds), io, out_of_memory, device_lost.
  static std::unique_ptr<gpu::Pending<std::shared_ptr<const GraphModel>>> load(
      gpu::Device device, pte::Graph graph, const OperatorRegistry& operators,
      GraphPasses passes = {}, PlanOptions options = {});

  const gpu::Device& device() const { return device_; }
  const DeviceFacts& facts() const { return facts_; }  // what passes saw and planning will see
  const pte::Graph& graph() const { return graph_; }
  const MemoryPlan& memory() const { return memory_; }
  const OperatorRegistry& operators() const { return *operators_; }
  // The buffer of a weights storage; null for storages that belong to a session.
  const gpu::Buffer* weights(uint32_t storage) const {
    return weights_[storage].valid() ? &weights_[storage] : nullptr;
  }

 private:
  friend class ModelLoader;
  GraphModel(gpu::Device device, pte::Graph graph, const OperatorRegistry& operators,
             PlanOptions options)
      : device_(std::move(device)),
        facts_(device_facts(device_, std::move(options))),
        graph_(std::move(graph)),
        operators_(&operators) {}

  gpu::Device device_;
  DeviceFacts facts_;
  pte::Graph graph_;
  const OperatorRegistry* operators_;
  MemoryPlan memory_;
  std::vector<gpu::Buffer> weights_;  // by storage; empty ones are a session's
};

// Copies the bytes of a constant into a buffer, at most `limit` of them, from `done` on. Returns
// how many are there now. For models and for sessions, whose caches may start from constants.
Result<uint64_t> upload_constant(gpu::Device& device, const pte::GraphConstant& constant,
                                 const gpu::Buffer& buffer, uint64_t done, uint64_t limit);

}  // namespace ptero::graph
