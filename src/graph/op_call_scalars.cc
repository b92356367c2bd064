// SPDX-License-Identifier: BSD-3-Clause
// The part of OpCall that is about SymInts: what reads them as data, and what produces them.
#include <algorithm>

#include "graph/op_call.h"

namespace ptero::graph {

Result<ScalarOperand> OpCall::operand(size_t arg) const {
  if (arg < arg_count()) {
    if (const std::optional<int64_t> constant = constant_integer(value(arg))) {
      return ScalarOperand{std::nullopt, *constant};
    }
    if (std::holds_alternative<pte::SymInt>(value(arg))) {
      const uint32_t id = call_.args[arg];
      PTERO_REJECT_IF(live_.scalars[id].where == ScalarState::Where::unset, invalid_program,
                      "SymInt (value {}) is used before anything sets it.", id);
      return ScalarOperand{id, 0};
    }
  }
  return wrong_kind(arg, "an integer");
}

Result<Slot> OpCall::slot(size_t arg, int64_t lowest, int64_t highest) {
  PTERO_ASSIGN_OR_RETURN(const ScalarOperand operand, this->operand(arg));
  std::optional<int64_t> known;  // at every run of the plan
  if (!operand.id) {
    known = operand.constant;
  } else if (const ScalarState& state = live_.scalars[*operand.id];
             state.where == ScalarState::Where::host && !state.base) {
    known = state.value;
  }
  PTERO_REJECT_IF(known && (*known < lowest || *known > highest), invalid_argument,
                  "Argument {} ({}) does not lie between {} and {}.", arg, *known, lowest, highest);
  if (!known) {
    plan_.scalar_checks.push_back(
        {*operand.id, lowest, highest, static_cast<uint32_t>(index_), arg});
  }
  const std::optional<uint32_t>& index = memory_.slots.slot_of[call_.args[arg]];
  PTERO_REJECT_IF(!index, invalid_program, "Argument {} does not fit 32 bits.", arg);
  return Slot{*index, operand};
}

std::optional<ScalarState> OpCall::linear(size_t arg) const {
  const Result<ScalarOperand> operand = this->operand(arg);
  if (!operand.ok()) {
    return std::nullopt;
  }
  if (!operand->id) {
    return ScalarState{ScalarState::Where::host, operand->constant, std::nullopt,
                       operand->constant};
  }
  return live_.scalars[*operand->id];
}

bool OpCall::varies(size_t arg) const {
  const std::optional<ScalarState> state = linear(arg);
  return state && state->base.has_value();
}

std::optional<int64_t> OpCall::distance(size_t from, size_t to) const {
  const std::optional<ScalarState> a = linear(from);
  const std::optional<ScalarState> b = linear(to);
  if (!a || !b || a->base != b->base) {
    return std::nullopt;
  }
  return difference(b->offset, a->offset);
}

Result<uint32_t> OpCall::scalar_output() const {
  const uint32_t id = call_.args.back();
  if (!std::holds_alternative<pte::SymInt>(graph_.values[id])) {
    return wrong_kind(arg_count() - 1, "a SymInt to produce");
  }
  return id;
}

Status OpCall::set_scalar(int64_t scalar) {
  PTERO_ASSIGN_OR_RETURN(const uint32_t id, scalar_output());
  live_.scalars[id] = {ScalarState::Where::host, scalar, std::nullopt, scalar};
  ScalarStep step{.kind = ScalarStep::Kind::constant, .id = id, .constant = scalar};
  step.call = static_cast<uint32_t>(index_);
  plan_.scalar_steps.push_back(step);
  return ok_status();
}

Result<bool> OpCall::set_scalar(const ScalarFunction& function, size_t a, size_t b) {
  PTERO_ASSIGN_OR_RETURN(const uint32_t id, scalar_output());
  PTERO_ASSIGN_OR_RETURN(const ScalarOperand left, operand(a));
  PTERO_ASSIGN_OR_RETURN(const ScalarOperand right, operand(b));
  const ScalarState x = *linear(a);
  const ScalarState y = *linear(b);
  ScalarState result{.where = ScalarState::Where::host};
  if (x.base || y.base) {
    result.base = id;
    // base + m with n more or less is base + (m + n) or base + (m - n), and bases cancel out.
    if (const Result<int64_t> offset = function.compute(x.offset, y.offset);
        function.sum != 0 && offset.ok()) {
      if (!y.base || (!x.base && function.sum == 1)) {
        result.base = x.base ? x.base : y.base;
        result.offset = *offset;
      } else if (function.sum == -1 && x.base == y.base) {
        result.base = std::nullopt;
        result.offset = *offset;
      }
    }
  }
  if (x.where == ScalarState::Where::device || y.where == ScalarState::Where::device) {
    result.where = ScalarState::Where::device;
    live_.scalars[id] = result;
    return false;
  }
  PTERO_ASSIGN_OR_RETURN(result.value, function.compute(x.value, y.value));
  if (!result.base) {
    result.offset = result.value;
  }
  live_.scalars[id] = result;
  ScalarStep step{.kind = ScalarStep::Kind::function, .id = id};
  step.function = &function;
  step.a = left;
  step.b = right;
  step.call = static_cast<uint32_t>(index_);
  plan_.scalar_steps.push_back(step);
  return true;
}

Result<bool> OpCall::set_scalar_element(const TensorRef& x, uint64_t element) {
  PTERO_ASSIGN_OR_RETURN(const uint32_t id, scalar_output());
  const auto input = std::find(graph_.inputs.begin(), graph_.inputs.end(), x.id);
  const size_t position = static_cast<size_t>(input - graph_.inputs.begin());
  if (input == graph_.inputs.end()) {
    return false;
  }
  plan_.inputs_asked.push_back(position);
  if (host_inputs_[position].empty()) {
    return false;
  }
  ScalarStep step{.kind = ScalarStep::Kind::element, .id = id};
  step.input = position;
  step.element = element;
  step.call = static_cast<uint32_t>(index_);
  plan_.scalar_steps.push_back(step);
  PTERO_ASSIGN_OR_RETURN(const int64_t value,
                         integer_element(std::get<pte::GraphTensor>(graph_.values[x.id]),
                                         host_inputs_[position], element));
  live_.scalars[id] = {ScalarState::Where::host, value, id, 0};
  return true;
}

Result<uint32_t> OpCall::set_scalar_on_device() {
  PTERO_ASSIGN_OR_RETURN(const uint32_t id, scalar_output());
  ScalarState& state = live_.scalars[id];
  // A function of two arguments has left its base and offset here already.
  if (state.where != ScalarState::Where::device) {
    state = {ScalarState::Where::device, 0, id, 0};
  }
  plan_.device_scalars.push_back(id);
  return *memory_.slots.slot_of[id];
}

void OpCall::add_live_grid(const SlotGrid& follow, PlannedDispatch& dispatch) {
  const ScalarOperand& operand = follow.slot.operand;
  if (!operand.id) {
    return;
  }
  dispatch.live_grid = LiveGrid{follow.axis, *operand.id, follow.add, follow.divide};
  plan_.live_grids.push_back(plan_.commands.size());
}

}  // namespace ptero::graph
