// SPDX-License-Identifier: BSD-3-Clause
// Copies that change the element type.
#include <string_view>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/pointwise.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::TensorRef;

std::string_view conversion(const TensorRef& from, const TensorRef& to) {
  if (to.dtype == pte::GraphDtype::boolean) {
    // By its bits, as NaN and the smallest numbers are not 0.
    return from.is_float() ? "return (bitcast<u32>(a) & 0x7fffffffu) != 0u;" : "return a != 0;";
  }
  // i32() drops the fraction and keeps within int32.
  return to.is_float() ? "return f32(a);" : "return i32(a);";
}

// The other arguments say what the result's type says already, or nothing on a dense tensor.
Status plan_convert(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  if (x.dtype == y.dtype) {
    PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
    return op.copy_unless_aliased(x, y);
  }
  return pointwise(op, x, y, {conversion(x, y), compute_of(x.dtype)});
}

}  // namespace

void register_convert(graph::OperatorRegistry& operators) {
  operators.add("aten._to_copy.default", plan_convert, {.view = true, .mutates = {}});
  operators.add("dim_order_ops._to_dim_order_copy.default", plan_convert,
                {.view = true, .mutates = {}});
}

}  // namespace ptero::ops
