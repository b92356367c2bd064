// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic of two tensors, broadcast against each other.
#include <string_view>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/pointwise.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::TensorRef;

// One row an operator: a body of pointwise.h for float results and one for integer results, which
// wrap. s.x is alpha.
struct BinaryRow {
  std::string_view name;
  std::string_view float_body;
  std::string_view int_body;  // empty: PyTorch gives a float for integers too
  bool has_alpha = false;
};

constexpr BinaryRow kRows[] = {
    {"aten.add.Tensor", "return a + s.x * b;", "return a + s.x * b;", true},
    {"aten.sub.Tensor", "return a - s.x * b;", "return a - s.x * b;", true},
    {"aten.mul.Tensor", "return a * b;", "return a * b;"},
    {"aten.div.Tensor", "return a / b;", ""},
    // A NaN in either operand is the result, which min() leaves open.
    {"aten.minimum.default", "return select(select(min(a, b), b, is_nan(b)), a, is_nan(a));",
     "return min(a, b);"},
    {"aten.pow.Tensor_Tensor", "return power(a, b);", "return integer_power(a, b);"},
};

// aten.div.Tensor_mode, by its string.
constexpr BinaryRow kDivisionModes[] = {
    {"floor", "return floor_quotient(a, b);", "return integer_floor_quotient(a, b);"},
    {"trunc", "return trunc_quotient(a, b);", "return a / b;"},
};

Status plan_binary(OpCall& op, const BinaryRow& row) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef b, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  Elementwise what;
  PTERO_ASSIGN_OR_RETURN(what.compute, arithmetic_compute(y, {&a, &b}));
  what.body = what.compute == Compute::f32 ? row.float_body : row.int_body;
  PTERO_REJECT_IF(what.body.empty(), unsupported, "Element type ({}) of the result is not float.",
                  pte::name_of(y.dtype));
  if (row.has_alpha && what.compute == Compute::i32) {
    PTERO_ASSIGN_OR_RETURN(const int64_t alpha, op.integer_or(2, 1));
    what.scalars[0] = static_cast<uint32_t>(alpha);  // wraps, as the products do
  } else if (row.has_alpha) {
    PTERO_ASSIGN_OR_RETURN(const double alpha, op.is_null(2) ? 1.0 : scalar(op, 2));
    what.scalars[0] = float_bits(alpha);
  }
  return pointwise(op, a, b, y, what);
}

Status plan_division(OpCall& op) {
  if (op.is_null(2)) {
    return plan_binary(op, {"", "return a / b;", ""});
  }
  PTERO_ASSIGN_OR_RETURN(const std::string_view mode, op.string(2));
  for (const BinaryRow& row : kDivisionModes) {
    if (row.name == mode) {
      return plan_binary(op, row);
    }
  }
  return make_error(ErrorCode::unsupported, "Rounding mode ({}) is neither floor nor trunc.", mode);
}

}  // namespace

void register_binary(graph::OperatorRegistry& operators) {
  for (const BinaryRow& row : kRows) {
    operators.add(std::string(row.name), [&row](OpCall& op) { return plan_binary(op, row); });
  }
  operators.add("aten.div.Tensor_mode", plan_division);
}

}  // namespace ptero::ops
