// SPDX-License-Identifier: BSD-3-Clause
// Integers that are known only when the graph runs, computed on the host as plans are made.
#include <cstdint>
#include <limits>
#include <optional>

#include "graph/op_call.h"
#include "graph/operator.h"

namespace ptero::ops {
namespace {

using graph::OpCall;

// Kernels take i32, so that is the range of all symbolic integers. Nothing below overflows 64 bits.
Result<int64_t> in_range(const OpCall& op, int64_t value) {
  PTERO_REJECT_IF(
      value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max(),
      invalid_argument, "Value ({}) in {} does not fit 32 bits.", value, op.name());
  return value;
}

struct ScalarRow {
  const char* name;
  std::optional<int64_t> (*compute)(int64_t a, int64_t b);  // empty: a division by zero
};

constexpr ScalarRow kRows[] = {
    {"add", [](int64_t a, int64_t b) -> std::optional<int64_t> { return a + b; }},
    {"sub", [](int64_t a, int64_t b) -> std::optional<int64_t> { return a - b; }},
    {"mul", [](int64_t a, int64_t b) -> std::optional<int64_t> { return a * b; }},
    {"floordiv",
     [](int64_t a, int64_t b) -> std::optional<int64_t> {
       if (b == 0) {
         return std::nullopt;
       }
       // Rounds down, as Python does, where C++ rounds towards 0.
       return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
     }},
};

Status plan_scalar(OpCall& op, const ScalarRow& row) {
  PTERO_ASSIGN_OR_RETURN(int64_t a, op.integer(0));
  PTERO_ASSIGN_OR_RETURN(int64_t b, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(a, in_range(op, a));
  PTERO_ASSIGN_OR_RETURN(b, in_range(op, b));
  const std::optional<int64_t> result = row.compute(a, b);
  PTERO_REJECT_IF(!result, invalid_argument, "Value ({}) is divided by 0.", a);
  PTERO_ASSIGN_OR_RETURN(const int64_t value, in_range(op, *result));
  return op.set_scalar(value);
}

// [x, dim, out]: the live size.
Status plan_size(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const graph::TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
  PTERO_ASSIGN_OR_RETURN(const int64_t size, in_range(op, x.shape[axis]));
  return op.set_scalar(size);
}

}  // namespace

void register_scalar(graph::OperatorRegistry& operators) {
  for (const ScalarRow& row : kRows) {
    operators.add(row.name, [&row](OpCall& op) { return plan_scalar(op, row); });
  }
  operators.add("sym_size.int", plan_size);
}

}  // namespace ptero::ops
