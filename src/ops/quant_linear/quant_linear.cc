// SPDX-License-Identifier: BSD-3-Clause
// Linear layers with 4-bit weights.
#include <limits>
#include <utility>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/quant_linear/dq8ca.h"
#include "ops/quant_linear/fused_q4.h"
#include "ops/quant_linear/q4_linear.h"

namespace ptero::ops {
namespace {

using graph::OpCall;

// x, weight, scales [G, N], group_size, bias
Status plan_q4gsw(OpCall& op) {
  Q4Linear linear;
  PTERO_ASSIGN_OR_RETURN(linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(linear.weight, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(linear.scales, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(linear.group_size, op.integer(3));
  PTERO_ASSIGN_OR_RETURN(linear.bias, op.optional_tensor(4));
  PTERO_ASSIGN_OR_RETURN(linear.y, op.output());
  linear.may_halve = true;
  return dispatch_q4_linear(op, std::move(linear));
}

// x, weight, scales [N]: one group a row, and the other order in a byte
Status plan_qcs4w(OpCall& op) {
  Q4Linear linear;
  PTERO_ASSIGN_OR_RETURN(linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(linear.weight, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(linear.scales, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(linear.y, op.output());
  linear.group_size = std::numeric_limits<int64_t>::max();
  linear.swapped = true;
  return dispatch_q4_linear(op, std::move(linear));
}

}  // namespace

void register_quant_linear(graph::OperatorRegistry& operators) {
  operators.add("et_vk.linear_q4gsw.default", plan_q4gsw);
  operators.add("ptero.linear_q4gsw.default", plan_fused_q4gsw);
  operators.add("et_vk.linear_dq8ca_q4gsw.default", plan_dq8ca_q4gsw);
  operators.add("et_vk.linear_qcs4w.default", plan_qcs4w);
}

}  // namespace ptero::ops
