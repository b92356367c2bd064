// SPDX-License-Identifier: BSD-3-Clause
// Linear layers with 4-bit weights.
#include <limits>
#include <utility>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/quant_linear/fake_quantize.wgsl.h"
#include "ops/quant_linear/q4_linear.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::TensorRef;

// x, weight, scales [G, N], group_size, bias
Status plan_q4gsw(OpCall& op) {
  Q4Linear linear;
  PTERO_ASSIGN_OR_RETURN(linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(linear.weight, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(linear.scales, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(linear.group_size, op.integer(3));
  PTERO_ASSIGN_OR_RETURN(linear.bias, op.optional_tensor(4));
  PTERO_ASSIGN_OR_RETURN(linear.y, op.output());
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

// What dynamic quantisation needs of x: a scale and an int8 zero point for each row.
Status check_row_affine(const TensorRef& x, const TensorRef& scales, const TensorRef& zeros) {
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(rank == 0 || !x.is_float() || !scales.is_float(), unsupported,
                  "Element types ({} and {}) of x {} and its scales have no kernel in this "
                  "operator.",
                  pte::name_of(x.dtype), pte::name_of(scales.dtype), to_string(x.shape));
  PTERO_REJECT_IF(zeros.dtype != pte::GraphDtype::int8, unsupported,
                  "Element type ({}) of zero points is not int8.", pte::name_of(zeros.dtype));
  const uint64_t rows = x.shape.numel(0, rank - 1);
  PTERO_REJECT_IF(scales.numel() != rows || zeros.numel() != rows, invalid_program,
                  "Numbers of scales ({}) and zero points ({}) are not that of rows of x ({}).",
                  scales.numel(), zeros.numel(), rows);
  return ok_status();
}

// x, its scales and zero points, weight, weight_sums, scales [G, N], group_size, bias
Status plan_dq8ca_q4gsw(OpCall& op) {
  Q4Linear linear;
  PTERO_ASSIGN_OR_RETURN(linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef x_scales, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const TensorRef x_zeros, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(linear.weight, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(linear.scales, op.tensor(5));
  PTERO_ASSIGN_OR_RETURN(linear.group_size, op.integer(6));
  PTERO_ASSIGN_OR_RETURN(linear.bias, op.optional_tensor(7));
  PTERO_ASSIGN_OR_RETURN(linear.y, op.output());
  PTERO_RETURN_IF_ERROR(check_row_affine(linear.x, x_scales, x_zeros));
  const uint64_t n = linear.x.numel();
  if (n > 0) {
    PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(linear.x));
    PTERO_ASSIGN_OR_RETURN(const ElementType scale_type, element_type(x_scales));
    PTERO_ASSIGN_OR_RETURN(linear.x_values, op.scratch(n * 4));
    PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, n));
    PTERO_RETURN_IF_ERROR(
        op.dispatch({{&wgsl::kFakeQuantize,
                      fmt::format("{}alias S = {};\n", type.alias(), scale_type.name),
                      {},
                      type.features | scale_type.features},
                     {linear.x, x_scales, x_zeros, *linear.x_values},
                     grid},
                    wgsl::FakeQuantizeParams{.n = static_cast<uint32_t>(n),
                                             .width = linear.x.shape[linear.x.shape.rank() - 1]}));
  }
  return dispatch_q4_linear(op, std::move(linear));
}

}  // namespace

void register_quant_linear(graph::OperatorRegistry& operators) {
  operators.add("et_vk.linear_q4gsw.default", plan_q4gsw);
  operators.add("et_vk.linear_dq8ca_q4gsw.default", plan_dq8ca_q4gsw);
  operators.add("et_vk.linear_qcs4w.default", plan_qcs4w);
}

}  // namespace ptero::ops
