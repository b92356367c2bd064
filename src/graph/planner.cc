// SPDX-License-Identifier: BSD-3-Clause
#include "graph/planner.h"

#include <algorithm>
#include <utility>

namespace ptero::graph {

size_t Plan::dispatches() const {
  return static_cast<size_t>(std::count_if(
      commands.begin(), commands.end(),
      [](const auto& command) { return std::holds_alternative<PlannedDispatch>(command); }));
}

Planner::Planner(const pte::Graph& graph, const MemoryPlan& memory,
                 const OperatorRegistry& operators, DeviceFacts device, size_t capacity)
    : graph_(graph),
      memory_(memory),
      operators_(operators),
      device_(std::move(device)),
      capacity_(std::max<size_t>(capacity, 1)) {}

Result<std::vector<LiveInput>> Planner::largest_inputs() const {
  std::vector<LiveInput> inputs;
  for (const uint32_t id : graph_.inputs) {
    LiveInput input;
    if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph_.values[id])) {
      PTERO_ASSIGN_OR_RETURN(input.shape, Shape::from(tensor->dims));
    }
    inputs.push_back(input);
  }
  return inputs;
}

Status Planner::check_inputs(std::span<const LiveInput> inputs) const {
  PTERO_REJECT_IF(inputs.size() != graph_.inputs.size(), invalid_argument,
                  "Number of inputs ({}) differs from what the graph takes ({}).", inputs.size(),
                  graph_.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* tensor = std::get_if<pte::GraphTensor>(&graph_.values[graph_.inputs[i]]);
    if (tensor == nullptr) {
      continue;
    }
    const Shape& shape = inputs[i].shape;
    PTERO_REJECT_IF(shape.rank() != tensor->dims.size(), invalid_argument,
                    "Rank ({}) of input {} {} differs from what the graph takes ({}).",
                    shape.rank(), i, to_string(shape), tensor->dims.size());
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      PTERO_REJECT_IF(
          shape[axis] > tensor->dims[axis] || (shape[axis] == 0) != (tensor->dims[axis] == 0),
          invalid_argument,
          "Dimension {} ({}) of input {} {} does not lie between {} and the bound ({}).", axis,
          shape[axis], i, to_string(shape), std::min(tensor->dims[axis], 1u), tensor->dims[axis]);
    }
  }
  return ok_status();
}

std::vector<LiveInput> Planner::key_of(std::span<const LiveInput> inputs) const {
  std::vector<LiveInput> key(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::holds_alternative<pte::GraphTensor>(graph_.values[graph_.inputs[i]])) {
      key[i].shape = inputs[i].shape;
    } else {
      key[i].scalar = inputs[i].scalar;
    }
  }
  return key;
}

Result<std::shared_ptr<const Plan>> Planner::plan(std::span<const LiveInput> inputs) {
  PTERO_RETURN_IF_ERROR(check_inputs(inputs));
  std::vector<LiveInput> key = key_of(inputs);
  const auto known = std::find_if(remembered_.begin(), remembered_.end(),
                                  [&](const Remembered& entry) { return entry.inputs == key; });
  if (known != remembered_.end()) {
    remembered_.splice(remembered_.begin(), remembered_, known);
    return remembered_.front().plan;
  }
  PTERO_ASSIGN_OR_RETURN(auto plan, make(key));
  remembered_.push_front({std::move(key), plan});
  if (remembered_.size() > capacity_) {
    remembered_.pop_back();
  }
  return plan;
}

Result<std::shared_ptr<const Plan>> Planner::make(std::span<const LiveInput> inputs) {
  LiveValues live;
  live.shapes.resize(graph_.values.size());
  live.scalars.resize(graph_.values.size());
  for (size_t id = 0; id < graph_.values.size(); ++id) {
    if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph_.values[id])) {
      PTERO_ASSIGN_OR_RETURN(live.shapes[id], Shape::from(tensor->dims), "in value {}", id);
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t id = graph_.inputs[i];
    if (std::holds_alternative<pte::GraphTensor>(graph_.values[id])) {
      live.shapes[id] = inputs[i].shape;
    } else {
      live.scalars[id] = inputs[i].scalar;
    }
  }
  auto plan = std::make_shared<Plan>();
  for (size_t index = 0; index < graph_.chain.size(); ++index) {
    const std::string& name = graph_.chain[index].name;
    const Operator* op = operators_.find(name);
    PTERO_REJECT_IF(op == nullptr, unsupported, "This build does not run operator {}.", name);
    OpCall call(graph_, index, device_, memory_.storage_of, memory_.aliases[index], live, *plan);
    ++operator_calls_;
    PTERO_RETURN_IF_ERROR(op->plan(call), "while planning operator {} ({})", index, name);
  }
  for (const uint32_t id : graph_.outputs) {
    plan->output_shapes.push_back(live.shapes[id]);
    plan->output_scalars.push_back(live.scalars[id]);
  }
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace ptero::graph
