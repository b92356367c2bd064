// SPDX-License-Identifier: BSD-3-Clause
// TensorAffine quantisation of activations to bytes: parameters by row, and conversions of whole
// tensors.
#include <cmath>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/quant_affine/choose_qparams.wgsl.h"
#include "ops/quant_affine/dequantize.wgsl.h"
#include "ops/quant_affine/quantize.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

struct Range {
  int64_t low = 0;
  int64_t high = 0;
};

// The values of a quantised tensor, from arguments `arg` and `arg` + 1. They must fit its bytes.
Result<Range> quantized_range(OpCall& op, size_t arg, const TensorRef& quantized) {
  PTERO_REJECT_IF(
      quantized.dtype != pte::GraphDtype::int8 && quantized.dtype != pte::GraphDtype::uint8,
      unsupported, "Element type ({}) of quantised tensor {} is neither int8 nor uint8.",
      pte::name_of(quantized.dtype), quantized.id);
  const bool is_signed = quantized.dtype == pte::GraphDtype::int8;
  const Range whole{is_signed ? -128 : 0, is_signed ? 127 : 255};
  Range range;
  PTERO_ASSIGN_OR_RETURN(range.low, op.integer_or(arg, whole.low));
  PTERO_ASSIGN_OR_RETURN(range.high, op.integer_or(arg + 1, whole.high));
  PTERO_REJECT_IF(range.low >= range.high || range.low < whole.low || range.high > whole.high,
                  unsupported, "Range [{}, {}] of quantised values does not lie in that of {}.",
                  range.low, range.high, pte::name_of(quantized.dtype));
  return range;
}

struct TensorAffine {
  double scale = 1;
  int64_t zero = 0;
};

// Arguments 1 and 2: scale and zero point of a whole tensor.
Result<TensorAffine> affine(OpCall& op) {
  TensorAffine made;
  PTERO_ASSIGN_OR_RETURN(made.scale, op.number(1));
  PTERO_ASSIGN_OR_RETURN(made.zero, op.integer(2));
  PTERO_REJECT_IF(!(made.scale > 0) || std::isinf(made.scale), invalid_program,
                  "Scale ({}) is not a positive number.", made.scale);
  PTERO_REJECT_IF(made.zero < -65536 || made.zero > 65536, unsupported,
                  "Zero point ({}) lies far outside the range of a byte.", made.zero);
  return made;
}

// x, mapping_type, block_size, target_dtype, quant_min, quant_max, eps, scale_dtype,
// zero_point_dtype, keepdim; produces scales and zero points, one a row
Status plan_choose_qparams(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::string_view mapping, op.string(1));
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> block, op.integer_list(2));
  PTERO_ASSIGN_OR_RETURN(const double eps, op.number_or(6, 0x1p-23));
  PTERO_ASSIGN_OR_RETURN(TensorRef scales, op.output(0));
  PTERO_ASSIGN_OR_RETURN(TensorRef zero_points, op.output(1));
  PTERO_ASSIGN_OR_RETURN(const Range range, quantized_range(op, 4, zero_points));
  PTERO_REJECT_IF(zero_points.dtype != pte::GraphDtype::int8, unsupported,
                  "Element type ({}) of zero points is not int8.", pte::name_of(zero_points.dtype));
  PTERO_REJECT_IF(mapping != "ASYMMETRIC", unsupported,
                  "Mapping type ({}) is not ASYMMETRIC, the only one of this operator.", mapping);
  PTERO_RETURN_IF_ERROR(require_float(x));
  PTERO_RETURN_IF_ERROR(require_float(scales));
  PTERO_REJECT_IF(!(eps > 0), invalid_program, "Least scale ({}) is not positive.", eps);
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(rank == 0 || block.size() != rank, invalid_program,
                  "Number of block dimensions ({}) is not the rank of x {}.", block.size(),
                  to_string(x.shape));
  for (size_t i = 0; i < rank; ++i) {
    PTERO_REJECT_IF(block[i] != (i + 1 == rank ? x.shape[i] : 1), unsupported,
                    "Block dimension {} ({}) of x {} does not make blocks of one row each.", i,
                    block[i], to_string(x.shape));
  }
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(x));
  PTERO_ASSIGN_OR_RETURN(const ElementType scale_type, element_type(scales));

  Shape shape;
  for (size_t i = 0; i + 1 < rank; ++i) {
    shape.append(x.shape[i]);
  }
  if (scales.shape.rank() == rank) {  // keepdim
    shape.append(1);
  }
  PTERO_RETURN_IF_ERROR(op.set_shape(scales, shape));
  PTERO_RETURN_IF_ERROR(op.set_shape(zero_points, shape));
  const uint64_t rows = shape.numel();
  if (rows == 0) {
    return ok_status();
  }
  const uint32_t width = x.shape[rank - 1];
  PTERO_ASSIGN_OR_RETURN(const RowSplit split, split_rows(op, ceil_div<uint64_t>(rows, 4), width));
  return op.dispatch(
      {{&wgsl::kChooseQparams, fmt::format("{}alias S = {};\n", type.alias(), scale_type.name),
        split.overrides(), type.features | scale_type.features},
       {x, scales, zero_points},
       split.grid},
      wgsl::ChooseQparamsParams{.rows = static_cast<uint32_t>(rows),
                                .width = width,
                                .qmin = static_cast<float>(range.low),
                                .qmax = static_cast<float>(range.high),
                                .eps = static_cast<float>(eps)});
}

// x, scale, zero_point, quant_min, quant_max, dtype
Status plan_quantize(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorAffine by, affine(op));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_ASSIGN_OR_RETURN(const Range range, quantized_range(op, 3, y));
  PTERO_RETURN_IF_ERROR(require_float(x));
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(x));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
  if (y.numel() == 0) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, ceil_div<uint64_t>(y.numel(), 4)));
  return op.dispatch({{&wgsl::kQuantize, type.alias(), {}, type.features}, {x, y}, grid},
                     wgsl::QuantizeParams{.n = static_cast<uint32_t>(y.numel()),
                                          .inverse = static_cast<float>(1 / by.scale),
                                          .zero = static_cast<float>(by.zero),
                                          .low = static_cast<float>(range.low),
                                          .high = static_cast<float>(range.high)});
}

// x, scale, zero_point, quant_min, quant_max, dtype, perhaps out_dtype
Status plan_dequantize(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorAffine by, affine(op));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(quantized_range(op, 3, x));
  PTERO_RETURN_IF_ERROR(require_float(y));
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(y));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
  if (y.numel() == 0) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, y.numel()));
  return op.dispatch(
      {{&wgsl::kDequantize, type.alias(), {}, type.features}, {x, y}, grid},
      wgsl::DequantizeParams{.n = static_cast<uint32_t>(y.numel()),
                             .scale = static_cast<float>(by.scale),
                             .zero = static_cast<int32_t>(by.zero),
                             .is_signed = x.dtype == pte::GraphDtype::int8 ? 1u : 0u});
}

}  // namespace

void register_quant_affine(graph::OperatorRegistry& operators) {
  operators.add("torchao.choose_qparams_affine.default", plan_choose_qparams);
  operators.add("quantized_decomposed.quantize_per_tensor.default", plan_quantize);
  operators.add("quantized_decomposed.dequantize_per_tensor.default", plan_dequantize);
}

}  // namespace ptero::ops
