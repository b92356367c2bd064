// SPDX-License-Identifier: BSD-3-Clause
// Sums of int8 tensors with a scale and a zero point each.
#include <cmath>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/q8_add/q8_add.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::TensorRef;

struct Affine {
  double scale = 1;
  float zero = 0;
};

Result<Affine> affine(OpCall& op, size_t arg) {
  PTERO_ASSIGN_OR_RETURN(const double scale, op.number(arg));
  PTERO_ASSIGN_OR_RETURN(const int64_t zero, op.integer(arg + 1));
  PTERO_REJECT_IF(!(scale > 0) || std::isinf(scale), invalid_program,
                  "Scale ({}) is not a positive number.", scale);
  PTERO_REJECT_IF(zero < -128 || zero > 127, invalid_program,
                  "Zero point ({}) does not lie between -128 and 127.", zero);
  return Affine{scale, static_cast<float>(zero)};
}

// [a, b, a_scale, a_zero, b_scale, b_zero, y_scale, y_zero, alpha, y]
Status plan_q8ta_add(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef b, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const Affine by_a, affine(op, 2));
  PTERO_ASSIGN_OR_RETURN(const Affine by_b, affine(op, 4));
  PTERO_ASSIGN_OR_RETURN(const Affine by_y, affine(op, 6));
  PTERO_ASSIGN_OR_RETURN(const double alpha, op.number_or(8, 1));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  for (const TensorRef* tensor : {&a, &b, static_cast<const TensorRef*>(&y)}) {
    PTERO_REJECT_IF(tensor->dtype != pte::GraphDtype::int8, unsupported,
                    "Element type ({}) of tensor {} is not int8.", pte::name_of(tensor->dtype),
                    tensor->id);
  }
  PTERO_REJECT_IF(a.shape != b.shape, unsupported, "Shapes {} and {} of the operands differ.",
                  to_string(a.shape), to_string(b.shape));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, a.shape));
  if (y.numel() == 0) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, ceil_div<uint64_t>(y.numel(), 4)));
  return op.dispatch(
      {{&wgsl::kQ8Add}, {a, b, y}, grid},
      wgsl::Q8AddParams{.n = static_cast<uint32_t>(y.numel()),
                        .a_scale = static_cast<float>(by_a.scale / by_y.scale),
                        .a_zero = by_a.zero,
                        .b_scale = static_cast<float>(alpha * by_b.scale / by_y.scale),
                        .b_zero = by_b.zero,
                        .y_zero = by_y.zero});
}

}  // namespace

void register_q8_add(graph::OperatorRegistry& operators) {
  operators.add("et_vk.q8ta_add.default", plan_q8ta_add);
}

}  // namespace ptero::ops
