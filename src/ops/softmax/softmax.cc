// SPDX-License-Identifier: BSD-3-Clause
// Softmax and log-softmax over one dimension.
#include <algorithm>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/softmax/softmax.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::TensorRef;

// x, dim, half_to_float
Status plan_softmax(OpCall& op, bool logarithm) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_REJECT_IF(!x.is_float() || !y.is_float(), unsupported,
                  "Element types ({} to {}) of tensors {} and {} have no kernel in this operator.",
                  pte::name_of(x.dtype), pte::name_of(y.dtype), x.id, y.id);
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(x));
  PTERO_ASSIGN_OR_RETURN(const ElementType result, element_type(y));
  const size_t rank = x.shape.rank();
  // PyTorch takes a scalar for a tensor of one dimension.
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, std::max<size_t>(rank, 1)));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
  if (y.numel() == 0) {
    return ok_status();
  }
  const uint32_t length = rank == 0 ? 1 : x.shape[axis];
  const uint64_t stride = rank == 0 ? 1 : x.shape.numel(axis + 1, rank);
  const uint64_t rows = x.numel() / length;
  PTERO_ASSIGN_OR_RETURN(const RowSplit split, split_rows(op, rows, length, stride));
  std::vector<gpu::OverrideValue> overrides = split.overrides();
  overrides.push_back({"logarithm", logarithm ? 1.0 : 0.0});
  gpu::FeatureSet features = type.features;
  features |= result.features;
  return op.dispatch({{&wgsl::kSoftmax, fmt::format("{}alias R = {};\n", type.alias(), result.name),
                       std::move(overrides), features},
                      {x, y},
                      split.grid},
                     wgsl::SoftmaxParams{.rows = static_cast<uint32_t>(rows),
                                         .length = length,
                                         .stride = static_cast<uint32_t>(stride)});
}

}  // namespace

void register_softmax(graph::OperatorRegistry& operators) {
  operators.add("aten._softmax.default", [](OpCall& op) { return plan_softmax(op, false); });
  operators.add("aten._log_softmax.default", [](OpCall& op) { return plan_softmax(op, true); });
}

}  // namespace ptero::ops
