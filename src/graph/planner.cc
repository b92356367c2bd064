// SPDX-License-Identifier: BSD-3-Clause
#include "graph/planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/checked.h"

namespace ptero::graph {
namespace {

// How far a plan has come, to take back what an operator recorded before it had to stop.
class Mark {
 public:
  explicit Mark(const Plan& plan)
      : commands_(plan.commands.size()),
        scratch_(plan.scratch.size()),
        read_(plan.scalars_read.size()),
        steps_(plan.scalar_steps.size()),
        checks_(plan.scalar_checks.size()),
        device_(plan.device_scalars.size()),
        grids_(plan.live_grids.size()) {}

  void undo(Plan& plan) const {
    plan.commands.erase(plan.commands.begin() + static_cast<ptrdiff_t>(commands_),
                        plan.commands.end());
    plan.scratch.resize(scratch_);
    plan.scalars_read.resize(read_);
    plan.scalar_steps.resize(steps_);
    plan.scalar_checks.resize(checks_);
    plan.device_scalars.resize(device_);
    plan.live_grids.resize(grids_);
  }

 private:
  size_t commands_, scratch_, read_, steps_, checks_, device_, grids_;
};

// Numbers the slots of scratch by their size, the largest first. Slot i of every plan is served by
// one buffer, so that plans share as much as they can.
void number_scratch(Plan& plan) {
  std::vector<uint32_t> order(plan.scratch.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return plan.scratch[a] > plan.scratch[b]; });
  std::vector<uint64_t> bytes;
  std::vector<uint32_t> number(order.size());
  for (const uint32_t slot : order) {
    number[slot] = static_cast<uint32_t>(bytes.size());
    bytes.push_back(plan.scratch[slot]);
  }
  plan.scratch = std::move(bytes);
  for (auto& command : plan.commands) {
    if (auto* dispatch = std::get_if<PlannedDispatch>(&command)) {
      for (PlannedBinding& binding : dispatch->bindings) {
        binding.id = binding.is_scratch ? number[binding.id] : binding.id;
      }
    }
  }
}

}  // namespace

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
      capacity_(std::max<size_t>(capacity, 1)),
      asked_(graph.inputs.size()),
      written_(graph.inputs.size()) {
  const auto note = [&](uint32_t id) {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      written_[i] = written_[i] || graph_.inputs[i] == id;
    }
  };
  for (const pte::OperatorCall& call : graph_.chain) {
    const Operator* op = operators_.find(call.name);
    if (op == nullptr || call.args.empty()) {
      continue;  // planning says so
    }
    for (const uint8_t position : op->traits.mutates) {
      if (position < call.args.size()) {
        note(call.args[position]);
      }
    }
    note(call.args.back());
    if (const auto* list = std::get_if<pte::ValueIdList>(&graph_.values[call.args.back()])) {
      std::for_each(list->ids.begin(), list->ids.end(), note);
    }
  }
}

Result<std::vector<LiveInput>> Planner::largest_inputs() const {
  return inputs_of(std::numeric_limits<uint32_t>::max());
}

Result<std::vector<LiveInput>> Planner::smallest_inputs() const {
  return inputs_of(1);
}

Result<std::vector<LiveInput>> Planner::inputs_of(uint32_t most) const {
  std::vector<LiveInput> inputs;
  for (const uint32_t id : graph_.inputs) {
    LiveInput input;
    if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph_.values[id])) {
      std::vector<uint32_t> dims = tensor->dims;
      for (uint32_t& dim : dims) {
        dim = std::min(dim, most);
      }
      PTERO_ASSIGN_OR_RETURN(input.shape, Shape::from(dims));
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

std::vector<bool> Planner::bytes_that_matter(std::span<const LiveInput> inputs) const {
  std::vector<bool> there(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    there[i] = asked_[i] && !inputs[i].bytes.empty();
  }
  return there;
}

std::vector<std::span<const std::byte>> Planner::host_inputs(
    std::span<const LiveInput> inputs) const {
  std::vector<std::span<const std::byte>> bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bytes.push_back(written_[i] ? std::span<const std::byte>() : inputs[i].bytes);
  }
  return bytes;
}

LiveValues Planner::first_values(std::span<const LiveInput> inputs) const {
  LiveValues live;
  live.shapes.resize(graph_.values.size());
  live.scalars.resize(graph_.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t id = graph_.inputs[i];
    if (std::holds_alternative<pte::GraphTensor>(graph_.values[id])) {
      live.shapes[id] = inputs[i].shape;
    } else {
      live.scalars[id] = {ScalarState::Where::host, inputs[i].scalar, id, 0};
    }
  }
  return live;
}

Result<PlannedRun> Planner::plan(std::span<const LiveInput> inputs) {
  PTERO_RETURN_IF_ERROR(check_inputs(inputs));
  Key key;
  PlannedRun run{nullptr, ScalarValues(graph_.values.size())};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t id = graph_.inputs[i];
    const bool is_tensor = std::holds_alternative<pte::GraphTensor>(graph_.values[id]);
    key.shapes.push_back(is_tensor ? inputs[i].shape : Shape());
    if (!is_tensor) {
      run.scalars[id] = inputs[i].scalar;
    }
  }
  key.on_host = bytes_that_matter(inputs);
  return find_or_make(std::move(key), inputs, first_values(inputs), std::move(run));
}

Result<PlannedRun> Planner::resume(const PlannedRun& before, std::span<const LiveInput> inputs) {
  LiveValues live = *before.plan->live;
  for (size_t id = 0; id < live.scalars.size(); ++id) {
    if (const std::optional<int64_t>& value = before.scalars[id]) {
      live.scalars[id].where = ScalarState::Where::host;
      live.scalars[id].value = *value;
    }
  }
  return find_or_make(Key{before.plan, {}, {}}, inputs, std::move(live),
                      PlannedRun{nullptr, before.scalars});
}

bool Planner::recall(const Key& key, std::span<const std::span<const std::byte>> bytes,
                     PlannedRun& run) {
  for (auto entry = remembered_.begin(); entry != remembered_.end(); ++entry) {
    if (!(entry->key == key)) {
      continue;
    }
    // A plan for other values may fail to evaluate where the right one does not.
    ScalarValues scalars = run.scalars;
    const Plan& plan = *entry->plan;
    if (!evaluate(plan.scalar_steps, graph_, bytes, scalars).ok() ||
        !std::all_of(plan.scalars_read.begin(), plan.scalars_read.end(),
                     [&](const auto& read) { return scalars[read.first] == read.second; })) {
      continue;
    }
    remembered_.splice(remembered_.begin(), remembered_, entry);
    run = {remembered_.front().plan, std::move(scalars)};
    return true;
  }
  return false;
}

Result<PlannedRun> Planner::find_or_make(Key key, std::span<const LiveInput> inputs,
                                         LiveValues live, PlannedRun run) {
  const std::vector<std::span<const std::byte>> bytes = host_inputs(inputs);
  if (!recall(key, bytes, run)) {
    PTERO_ASSIGN_OR_RETURN(run.plan, make(key.after.get(), bytes, std::move(live)));
    PTERO_RETURN_IF_ERROR(evaluate(run.plan->scalar_steps, graph_, bytes, run.scalars));
    for (const size_t input : run.plan->inputs_asked) {
      asked_[input] = true;
    }
    if (key.after == nullptr) {
      key.on_host = bytes_that_matter(inputs);
    }
    remembered_.push_front({std::move(key), run.plan});
    if (remembered_.size() > capacity_) {
      remembered_.pop_back();
    }
  }
  PTERO_RETURN_IF_ERROR(check_scalars(run.plan->scalar_checks, graph_, run.scalars));
  return run;
}

uint64_t Planner::output_bytes(const Plan& plan) const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < plan.output_shapes.size(); ++i) {
    if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph_.values[graph_.outputs[i]])) {
      bytes +=
          ceil_div<uint64_t>(
              plan.output_shapes[i].numel() * pte::element_size(tensor->dtype).value_or(0), 4) *
          4;
    }
  }
  return bytes;
}

Status Planner::take_slots(PlannedRun& run, std::span<const int32_t> slots) const {
  for (const uint32_t id : run.plan->device_scalars) {
    const int32_t value = slots[*memory_.slots.slot_of[id]];
    PTERO_REJECT_IF(value == kNoScalar, invalid_argument,
                    "SymInt (value {}), computed on the device, does not fit 32 bits.", id);
    run.scalars[id] = value;
  }
  return check_scalars(run.plan->scalar_checks, graph_, run.scalars);
}

std::vector<int32_t> Planner::slots(const PlannedRun& run) const {
  std::vector<int32_t> slots = memory_.slots.initial;
  for (size_t id = 0; id < run.scalars.size(); ++id) {
    if (run.scalars[id]) {
      // Nothing reads one that does not fit: what reads it has a range.
      slots[*memory_.slots.slot_of[id]] = static_cast<int32_t>(
          std::clamp<int64_t>(*run.scalars[id], kNoScalar, std::numeric_limits<int32_t>::max()));
    }
  }
  return slots;
}

Result<std::shared_ptr<const Plan>> Planner::make(const Plan* after,
                                                  std::span<const std::span<const std::byte>> bytes,
                                                  LiveValues live) {
  auto plan = std::make_shared<Plan>();
  ScratchPool pool(device_.options.scratch_pool);
  size_t index = 0;
  if (after != nullptr) {
    index = after->next_call;
    plan->splits = after->splits + 1;
  } else {
    for (size_t id = 0; id < graph_.values.size(); ++id) {
      const auto* tensor = std::get_if<pte::GraphTensor>(&graph_.values[id]);
      if (tensor != nullptr &&
          std::find(graph_.inputs.begin(), graph_.inputs.end(), id) == graph_.inputs.end()) {
        PTERO_ASSIGN_OR_RETURN(live.shapes[id], Shape::from(tensor->dims), "in value {}", id);
      }
    }
  }
  for (; index < graph_.chain.size(); ++index) {
    const std::string& name = graph_.chain[index].name;
    const Operator* op = operators_.find(name);
    PTERO_REJECT_IF(op == nullptr, unsupported, "This build does not run operator {}.", name);
    const Mark before(*plan);
    ++operator_calls_;
    const Status status = [&] {
      OpCall call(graph_, index, device_, memory_, bytes, live, *plan, pool);
      return op->plan(call);
    }();
    if (plan->awaits) {
      before.undo(*plan);
      number_scratch(*plan);
      plan->next_call = index;
      plan->live = std::make_shared<const LiveValues>(std::move(live));
      return std::shared_ptr<const Plan>(std::move(plan));
    }
    PTERO_RETURN_IF_ERROR(status, "while planning operator {} ({})", index, name);
  }
  number_scratch(*plan);
  const auto on_device = [&](uint32_t id) {
    return live.scalars[id].where == ScalarState::Where::device;
  };
  for (const uint32_t id : graph_.outputs) {
    plan->output_shapes.push_back(live.shapes[id]);
    plan->reads_scalars = plan->reads_scalars || on_device(id);
  }
  for (const ScalarCheck& check : plan->scalar_checks) {
    plan->reads_scalars = plan->reads_scalars || on_device(check.id);
  }
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace ptero::graph
