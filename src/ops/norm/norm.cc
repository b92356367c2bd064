// SPDX-License-Identifier: BSD-3-Clause
// Normalisation over the last dimensions.
#include <limits>
#include <optional>
#include <vector>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/norm/layer_norm.wgsl.h"
#include "ops/norm/rms_norm.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// A weight or bias: one element for each of a row.
Status require_row(const char* what, const TensorRef& tensor, const TensorRef& x, uint64_t width) {
  PTERO_RETURN_IF_ERROR(require_same_type(x, tensor));
  PTERO_REJECT_IF(tensor.numel() != width, invalid_program,
                  "Number of elements ({}) of the {} differs from what is normalised ({}).",
                  tensor.numel(), what, width);
  return ok_status();
}

// x, weight, eps
Status plan_rms_norm(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef weight, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const double eps, op.number_or(2, std::numeric_limits<float>::epsilon()));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_float(x));
  PTERO_RETURN_IF_ERROR(require_same_type(x, y));
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(rank == 0, invalid_program, "A scalar has no last dimension to normalise.");
  const uint32_t width = x.shape[rank - 1];
  PTERO_RETURN_IF_ERROR(require_row("weight", weight, x, width));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
  if (y.numel() == 0) {
    return ok_status();
  }
  return dispatch_rms_norm(op, x, weight, eps, y);
}

// x, normalized_shape, weight, bias, eps; produces y, mean and rstd
Status plan_layer_norm(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> normalized, op.integer_list(1));
  PTERO_ASSIGN_OR_RETURN(const std::optional<TensorRef> weight, op.optional_tensor(2));
  PTERO_ASSIGN_OR_RETURN(const std::optional<TensorRef> bias, op.optional_tensor(3));
  PTERO_ASSIGN_OR_RETURN(const double eps, op.number(4));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output(0));
  PTERO_ASSIGN_OR_RETURN(TensorRef mean, op.output(1));
  PTERO_ASSIGN_OR_RETURN(TensorRef rstd, op.output(2));
  PTERO_RETURN_IF_ERROR(require_float(x));
  PTERO_RETURN_IF_ERROR(require_float(mean));
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(x));
  PTERO_ASSIGN_OR_RETURN(const ElementType stat, element_type(mean));
  PTERO_RETURN_IF_ERROR(require_same_type(x, y));
  PTERO_RETURN_IF_ERROR(require_same_type(mean, rstd));

  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(normalized.empty() || normalized.size() > rank, invalid_program,
                  "Number of normalised dimensions ({}) does not lie between 1 and the rank of {}.",
                  normalized.size(), to_string(x.shape));
  const size_t first = rank - normalized.size();
  Shape stats = x.shape;
  for (size_t axis = first; axis < rank; ++axis) {
    PTERO_REJECT_IF(normalized[axis - first] != x.shape[axis], invalid_program,
                    "Normalised dimension {} ({}) differs from that of the input {}.", axis - first,
                    normalized[axis - first], to_string(x.shape));
    stats.set(axis, 1);
  }
  const uint64_t rows = x.shape.numel(0, first);
  const uint64_t width = x.shape.numel(first, rank);
  wgsl::LayerNormParams params{.rows = static_cast<uint32_t>(rows),
                               .width = static_cast<uint32_t>(width),
                               .eps = static_cast<float>(eps),
                               .flags = (weight ? 1u : 0u) | (bias ? 2u : 0u)};
  if (weight) {
    PTERO_RETURN_IF_ERROR(require_row("weight", *weight, x, width));
  }
  if (bias) {
    PTERO_RETURN_IF_ERROR(require_row("bias", *bias, x, width));
  }
  PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
  PTERO_RETURN_IF_ERROR(op.set_shape(mean, stats));
  PTERO_RETURN_IF_ERROR(op.set_shape(rstd, stats));
  if (rows == 0) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const RowSplit split, split_rows(op, rows, width));
  gpu::FeatureSet features = type.features;
  features |= stat.features;
  return op.dispatch(
      {{&wgsl::kLayerNorm, fmt::format("{}alias Stat = {};\n", type.alias(), stat.name),
        split.overrides(), features},
       {x, weight.value_or(x), bias.value_or(x), y, mean, rstd},
       split.grid},
      params);
}

}  // namespace

void register_norm(graph::OperatorRegistry& operators) {
  operators.add("et_vk.rms_norm.default", plan_rms_norm);
  operators.add("aten.native_layer_norm.default", plan_layer_norm);
}

}  // namespace ptero::ops
