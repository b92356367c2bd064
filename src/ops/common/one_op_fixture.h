// SPDX-License-Identifier: BSD-3-Clause
// A graph of one operator call, made by hand and planned without a GPU. For tests of operators.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "graph/memory_plan.h"
#include "graph/planner.h"
#include "ops/all_operators.h"
#include "pte/graph.h"

namespace ptero::ops {

class OneOpFixture {
 public:
  // A common desktop adapter; tests change what they are about.
  OneOpFixture() {
    device.limits.max_storage_binding_size = uint64_t{128} << 20;
    device.limits.max_storage_buffers_per_stage = 8;
    device.limits.min_storage_offset_alignment = 256;
    device.limits.max_workgroup_storage_size = 16384;
    device.limits.max_invocations_per_workgroup = 256;
    device.limits.max_workgroup_size_x = 256;
    device.limits.max_workgroups_per_dimension = 65535;
  }

  // Each returns the id of a new value.
  uint32_t value(pte::GraphValue value) {
    graph.values.push_back(std::move(value));
    return static_cast<uint32_t>(graph.values.size() - 1);
  }
  uint32_t tensor(std::vector<uint32_t> dims, pte::GraphDtype dtype = pte::GraphDtype::float32) {
    pte::GraphTensor tensor;
    tensor.dtype = dtype;
    tensor.dims = std::move(dims);
    return value(std::move(tensor));
  }
  uint32_t input(std::vector<uint32_t> dims, pte::GraphDtype dtype = pte::GraphDtype::float32) {
    graph.inputs.push_back(tensor(std::move(dims), dtype));
    return graph.inputs.back();
  }
  uint32_t output(std::vector<uint32_t> dims, pte::GraphDtype dtype = pte::GraphDtype::float32) {
    graph.outputs.push_back(tensor(std::move(dims), dtype));
    return graph.outputs.back();
  }
  uint32_t integers(std::vector<int64_t> items) { return value(pte::IntList{std::move(items)}); }
  uint32_t list(std::vector<uint32_t> ids) { return value(pte::ValueIdList{std::move(ids)}); }
  uint32_t null() {
    graph.values.emplace_back();
    return static_cast<uint32_t>(graph.values.size() - 1);
  }

  // Plans one call at the largest shapes, or at these.
  Result<std::shared_ptr<const graph::Plan>> plan(std::string name, std::vector<uint32_t> args,
                                                  std::vector<graph::Shape> live = {}) {
    graph.chain = {{0, std::move(name), std::move(args)}};
    PTERO_ASSIGN_OR_RETURN(const graph::MemoryPlan memory,
                           graph::plan_memory(graph, all_operators()));
    graph::Planner planner(graph, memory, all_operators(), device);
    PTERO_ASSIGN_OR_RETURN(std::vector<graph::LiveInput> inputs, planner.largest_inputs());
    for (size_t i = 0; i < live.size(); ++i) {
      inputs.at(i).shape = live[i];
    }
    PTERO_ASSIGN_OR_RETURN(graph::PlannedRun run, planner.plan(inputs));
    return std::move(run.plan);
  }

  // The error of such a call, which must fail.
  Error plan_error(std::string name, std::vector<uint32_t> args) {
    auto made = plan(std::move(name), std::move(args));
    REQUIRE_FALSE(made.ok());
    return std::move(made).error();
  }

  pte::Graph graph;
  graph::DeviceFacts device;
};

inline const graph::PlannedDispatch& dispatch_at(const graph::Plan& plan, size_t index) {
  REQUIRE(index < plan.commands.size());
  const auto* dispatch = std::get_if<graph::PlannedDispatch>(&plan.commands[index]);
  REQUIRE(dispatch != nullptr);
  return *dispatch;
}

// The parameters of a dispatch, which must be of the kernel that Params belongs to.
template <typename Params>
Params params_of(const graph::PlannedDispatch& dispatch) {
  REQUIRE(dispatch.kernel.source->name == Params::kKernel);
  REQUIRE(dispatch.params.size() == sizeof(Params));
  Params params;
  std::memcpy(static_cast<void*>(&params), dispatch.params.data(), sizeof(Params));
  return params;
}

}  // namespace ptero::ops
