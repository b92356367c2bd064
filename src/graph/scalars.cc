// SPDX-License-Identifier: BSD-3-Clause
#include "graph/scalars.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace ptero::graph {
namespace {

Result<int64_t> operand(const ScalarOperand& operand, const ScalarValues& values) {
  if (!operand.id) {
    return operand.constant;
  }
  PTERO_REJECT_IF(!values[*operand.id], internal, "SymInt (value {}) has no value yet.",
                  *operand.id);
  return *values[*operand.id];
}

template <typename T>
Result<int64_t> element_as(std::span<const std::byte> bytes, uint64_t element) {
  PTERO_REJECT_IF(element >= bytes.size() / sizeof(T), internal,
                  "Element ({}) lies outside an input of {} bytes.", element, bytes.size());
  T value;
  std::memcpy(&value, bytes.data() + element * sizeof(T), sizeof(T));
  return static_cast<int64_t>(value);
}

Result<int64_t> value_of(const ScalarStep& step, const pte::Graph& graph,
                         std::span<const std::span<const std::byte>> inputs,
                         const ScalarValues& values) {
  switch (step.kind) {
    case ScalarStep::Kind::constant:
      return step.constant;
    case ScalarStep::Kind::element:
      return integer_element(std::get<pte::GraphTensor>(graph.values[graph.inputs[step.input]]),
                             inputs[step.input], step.element);
    case ScalarStep::Kind::function:
      break;
  }
  PTERO_ASSIGN_OR_RETURN(const int64_t a, operand(step.a, values));
  PTERO_ASSIGN_OR_RETURN(const int64_t b, operand(step.b, values));
  return step.function->compute(a, b);
}

}  // namespace

std::optional<int64_t> constant_integer(const pte::GraphValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return *integer;
  }
  // Exporters share one value between equal scalars, so 1 may arrive as 1.0.
  if (const auto* number = std::get_if<double>(&value);
      number != nullptr && std::abs(*number) < 0x1p53 && std::trunc(*number) == *number) {
    return static_cast<int64_t>(*number);
  }
  return std::nullopt;
}

std::optional<int64_t> difference(int64_t a, int64_t b) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  if (b < 0 ? a > kHighest + b : a < kLowest + b) {
    return std::nullopt;
  }
  return a - b;
}

Result<int64_t> integer_element(const pte::GraphTensor& tensor, std::span<const std::byte> bytes,
                                uint64_t element) {
  switch (tensor.dtype) {
    case pte::GraphDtype::int32:
      return element_as<int32_t>(bytes, element);
    case pte::GraphDtype::int64:
      return element_as<int64_t>(bytes, element);
    case pte::GraphDtype::int8:
      return element_as<int8_t>(bytes, element);
    case pte::GraphDtype::uint8:
    case pte::GraphDtype::boolean:
      return element_as<uint8_t>(bytes, element);
    default:
      return make_error(ErrorCode::unsupported,
                        "Element type ({}) of a tensor does not hold integers.",
                        pte::name_of(tensor.dtype));
  }
}

SlotTable SlotTable::of(const pte::Graph& graph) {
  SlotTable table;
  table.slot_of.resize(graph.values.size());
  for (size_t id = 0; id < graph.values.size(); ++id) {
    int32_t initial = 0;
    if (!std::holds_alternative<pte::SymInt>(graph.values[id])) {
      const std::optional<int64_t> constant = constant_integer(graph.values[id]);
      if (!constant || *constant <= kNoScalar || *constant > std::numeric_limits<int32_t>::max()) {
        continue;
      }
      initial = static_cast<int32_t>(*constant);
    }
    table.slot_of[id] = static_cast<uint32_t>(table.initial.size());
    table.initial.push_back(initial);
  }
  return table;
}

Status evaluate(std::span<const ScalarStep> steps, const pte::Graph& graph,
                std::span<const std::span<const std::byte>> inputs, ScalarValues& values) {
  for (const ScalarStep& step : steps) {
    PTERO_ASSIGN_OR_RETURN(const int64_t value, value_of(step, graph, inputs, values),
                           "in operator {} ({})", step.call, graph.chain[step.call].name);
    values[step.id] = value;
  }
  return ok_status();
}

Status check_scalars(std::span<const ScalarCheck> checks, const pte::Graph& graph,
                     const ScalarValues& values) {
  for (const ScalarCheck& check : checks) {
    const std::optional<int64_t>& value = values[check.id];
    PTERO_REJECT_IF(value && (*value < check.lowest || *value > check.highest), invalid_argument,
                    "Argument {} ({}) of operator {} ({}) does not lie between {} and {}.",
                    check.arg, *value, check.call, graph.chain[check.call].name, check.lowest,
                    check.highest);
  }
  return ok_status();
}

}  // namespace ptero::graph
