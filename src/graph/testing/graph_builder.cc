// SPDX-License-Identifier: BSD-3-Clause
#include "graph/testing/graph_builder.h"

#include <utility>

namespace ptero::graph::testing {

uint32_t GraphBuilder::add(pte::GraphValue value) {
  graph_.values.push_back(std::move(value));
  return static_cast<uint32_t>(graph_.values.size() - 1);
}

uint32_t GraphBuilder::tensor(Dims dims, pte::GraphDtype dtype) {
  pte::GraphTensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  return add(std::move(tensor));
}

uint32_t GraphBuilder::in_memory(uint32_t memory_id, Dims dims, pte::GraphDtype dtype) {
  const uint32_t id = tensor(std::move(dims), dtype);
  tensor_at(id).mem_obj_id = memory_id;
  return id;
}

uint32_t GraphBuilder::constant(std::string key, Dims dims, pte::GraphDtype dtype) {
  const uint32_t id = tensor(std::move(dims), dtype);
  pte::GraphTensor& tensor = tensor_at(id);
  tensor.constant_id = static_cast<uint32_t>(graph_.constants.size());
  pte::GraphConstant constant;
  constant.offset = key.empty() ? 0 : pte::kNamedDataOffset;
  constant.named_key = std::move(key);
  constant.data = ByteRange::whole(
      own_bytes(std::vector<std::byte>(pte::tensor_bytes(tensor.dtype, tensor.dims).value())));
  graph_.constants.push_back(std::move(constant));
  return id;
}

uint32_t GraphBuilder::integers(std::vector<int64_t> items) {
  return add(pte::IntList{std::move(items)});
}

uint32_t GraphBuilder::list(std::vector<uint32_t> ids) {
  return add(pte::ValueIdList{std::move(ids)});
}

uint32_t GraphBuilder::input(Dims dims, pte::GraphDtype dtype) {
  graph_.inputs.push_back(tensor(std::move(dims), dtype));
  return graph_.inputs.back();
}

void GraphBuilder::call(std::string name, std::vector<uint32_t> args) {
  graph_.chain.push_back(
      {static_cast<uint32_t>(graph_.chain.size()), std::move(name), std::move(args)});
}

pte::GraphTensor& GraphBuilder::tensor_at(uint32_t id) {
  return std::get<pte::GraphTensor>(graph_.values[id]);
}

DeviceFacts default_device() {
  DeviceFacts device;
  device.limits = {.max_buffer_size = 256 << 20,
                   .max_storage_binding_size = 128 << 20,
                   .max_storage_buffers_per_stage = 8,
                   .min_storage_offset_alignment = 256,
                   .min_uniform_offset_alignment = 256,
                   .max_workgroup_storage_size = 16384,
                   .max_invocations_per_workgroup = 256,
                   .max_workgroup_size_x = 256,
                   .max_workgroups_per_dimension = 65535};
  return device;
}

const PlannedDispatch& Planned::dispatch(size_t i) const {
  return std::get<PlannedDispatch>(plan->commands.at(i));
}

const PlannedCopy& Planned::copy(size_t i) const {
  return std::get<PlannedCopy>(plan->commands.at(i));
}

Result<Planned> plan_graph(const GraphBuilder& builder, const OperatorRegistry& operators,
                           std::vector<Shape> live) {
  Planned planned;
  planned.graph = builder.graph();
  PTERO_ASSIGN_OR_RETURN(planned.memory, plan_memory(planned.graph, operators));
  Planner planner(planned.graph, planned.memory, operators, default_device());
  PTERO_ASSIGN_OR_RETURN(std::vector<LiveInput> inputs, planner.largest_inputs());
  PTERO_REJECT_IF(!live.empty() && live.size() != inputs.size(), internal,
                  "Number of live shapes ({}) differs from the number of inputs ({}).", live.size(),
                  inputs.size());
  for (size_t i = 0; i < live.size(); ++i) {
    inputs[i].shape = live[i];
  }
  PTERO_ASSIGN_OR_RETURN(PlannedRun run, planner.plan(inputs));
  planned.plan = std::move(run.plan);
  planned.scalars = std::move(run.scalars);
  return planned;
}

}  // namespace ptero::graph::testing
