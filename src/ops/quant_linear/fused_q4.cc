// SPDX-License-Identifier: BSD-3-Clause
// ptero.linear_q4gsw: et_vk.linear_q4gsw with what often stands before and after it. No file has
// it; passes make it.
#include "ops/quant_linear/fused_q4.h"

#include <limits>
#include <utility>

#include "ops/common/kernel_types.h"
#include "ops/quant_linear/q4_linear.h"

namespace ptero::ops {

using graph::OpCall;

// x, weight, scales [G, N], group_size, bias, gated, norm_weight, norm_eps, residual
Status plan_fused_q4gsw(OpCall& op) {
  Q4Linear linear;
  PTERO_ASSIGN_OR_RETURN(linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(linear.weight, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(linear.scales, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(linear.group_size, op.integer(3));
  PTERO_ASSIGN_OR_RETURN(linear.bias, op.optional_tensor(4));
  PTERO_ASSIGN_OR_RETURN(linear.gated, op.boolean(5));
  PTERO_ASSIGN_OR_RETURN(linear.norm, op.optional_tensor(6));
  PTERO_ASSIGN_OR_RETURN(linear.eps, op.number_or(7, std::numeric_limits<float>::epsilon()));
  PTERO_ASSIGN_OR_RETURN(linear.residual, op.optional_tensor(8));
  PTERO_ASSIGN_OR_RETURN(linear.y, op.output());
  linear.may_halve = true;
  if (linear.norm) {
    const size_t rank = linear.x.shape.rank();
    PTERO_REJECT_IF(
        linear.x.dtype != pte::GraphDtype::float32 || linear.norm->dtype != linear.x.dtype ||
            rank == 0 || linear.norm->numel() != linear.x.shape[rank - 1],
        invalid_program, "Weights of the norm (tensor {}) do not fit rows of x, of shape {}.",
        linear.norm->id, to_string(linear.x.shape));
  }
  if (linear.residual) {
    PTERO_RETURN_IF_ERROR(require_same_type(linear.x, *linear.residual));
    graph::Shape y = linear.x.shape;
    PTERO_REJECT_IF(linear.bias.has_value() || y.rank() == 0, invalid_program,
                    "A residual does not go with a bias.");
    y.set(y.rank() - 1, linear.weight.shape[0]);
    PTERO_REJECT_IF(linear.residual->shape != y, invalid_program,
                    "Shape {} of the residual differs from that of y ({}).",
                    to_string(linear.residual->shape), to_string(y));
  }
  return dispatch_q4_linear(op, std::move(linear));
}

}  // namespace ptero::ops
