// SPDX-License-Identifier: BSD-3-Clause
#include "ops/quant_linear/q4_linear.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/norm/rms_norm.h"
#include "ops/quant_linear/q4_part.h"
#include "ops/quant_linear/swiglu.wgsl.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;
using graph::Shape;

Status check_weight(const Q4Linear& what, const Q4Shape& shape) {
  PTERO_REJECT_IF(
      what.weight.dtype != pte::GraphDtype::uint8 && what.weight.dtype != pte::GraphDtype::int8,
      unsupported, "Element type ({}) of packed weights in tensor {} is not a byte.",
      pte::name_of(what.weight.dtype), what.weight.id);
  PTERO_REJECT_IF(shape.row_bytes * 2 < shape.k, invalid_program,
                  "A row of the packed weights ({} bytes) holds fewer elements than x ({}).",
                  shape.row_bytes, shape.k);
  PTERO_REJECT_IF(what.group_size < 1, invalid_program, "Group size ({}) is below 1.",
                  what.group_size);
  return ok_status();
}

Status check_scales(const Q4Linear& what, const Q4Shape& shape) {
  PTERO_REJECT_IF(!what.scales.is_float(), unsupported,
                  "Element type ({}) of scales in tensor {} has no kernel in this operator.",
                  pte::name_of(what.scales.dtype), what.scales.id);
  const Shape& scales = what.scales.shape;
  PTERO_REJECT_IF(scales.rank() != 1 && scales.rank() != 2, invalid_program,
                  "Rank ({}) of scales is not 1 or 2.", scales.rank());
  const uint64_t groups = scales.rank() == 2 ? scales[0] : 1;
  PTERO_REJECT_IF(groups < ceil_div(shape.k, shape.group) || scales[scales.rank() - 1] < shape.n,
                  invalid_program,
                  "Shape {} of scales is too small for {} groups of {} rows of the weight.",
                  to_string(scales), ceil_div(shape.k, shape.group), shape.n);
  return ok_status();
}

// Groups whose scales, for so many columns, fit in one binding at any offset.
Result<uint64_t> groups_at_once(const Q4Layer& layer, uint64_t columns, const gpu::Limits& limits) {
  const uint64_t room = q4_window_size(item_size(layer.what.scales), limits);
  PTERO_REJECT_IF(room < columns, unsupported,
                  "A binding of this adapter (at most {} bytes) is too small for the scales of {} "
                  "rows of a weight.",
                  limits.max_storage_binding_size, columns);
  return (room - columns) / layer.scale_row + 1;
}

// The same for rows of x and y.
Result<uint64_t> rows_at_once(const Q4Layer& layer, const gpu::Limits& limits) {
  const Q4Shape& shape = layer.shape;
  const uint64_t x_item = layer.x_item();
  const uint64_t y_item = item_size(layer.what.y);
  const uint64_t limit = limits.max_storage_binding_size;
  if (shape.m <= limit / (shape.k * x_item) && shape.m <= limit / (shape.n * y_item)) {
    return shape.m;
  }
  const uint64_t rows =
      std::min(q4_window_size(x_item, limits) / shape.k, q4_window_size(y_item, limits) / shape.n);
  PTERO_REJECT_IF(rows == 0, unsupported,
                  "A binding of this adapter (at most {} bytes) is too small for a row of a "
                  "product, {} elements to {}.",
                  limit, shape.k, shape.n);
  return rows;
}

}  // namespace

Result<Q4Shape> check_q4_linear(OpCall& op, Q4Linear& what) {
  const size_t rank = what.x.shape.rank();
  PTERO_REJECT_IF(rank == 0 || what.weight.shape.rank() != 2, invalid_program,
                  "Shapes {} of x and {} of the packed weights are no linear layer.",
                  to_string(what.x.shape), to_string(what.weight.shape));
  PTERO_REJECT_IF(!what.x.is_float(), unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(what.x.dtype), what.x.id);
  PTERO_RETURN_IF_ERROR(require_same_type(what.x, what.y));
  Q4Shape shape;
  shape.m = what.x.shape.numel(0, rank - 1);
  shape.k = what.x.shape[rank - 1];
  shape.n = what.weight.shape[0];
  shape.row_bytes = what.weight.shape[1];
  PTERO_RETURN_IF_ERROR(check_weight(what, shape));
  shape.group = std::min(static_cast<uint64_t>(what.group_size), std::max<uint64_t>(shape.k, 1));
  PTERO_RETURN_IF_ERROR(check_scales(what, shape));
  if (what.bias) {
    PTERO_RETURN_IF_ERROR(require_same_type(what.x, *what.bias));
    PTERO_REJECT_IF(what.bias->numel() < shape.n, invalid_program,
                    "Number of elements ({}) of the bias is below that of a row of y ({}).",
                    what.bias->numel(), shape.n);
  }
  PTERO_REJECT_IF(
      what.gated && (shape.n % 2 != 0 || what.bias || what.residual), invalid_program,
      "Gates in a linear layer of {} rows of the weight go with an even number of them, "
      "and without bias and residual.",
      shape.n);
  Shape y = what.x.shape;
  y.set(rank - 1, u32(what.gated ? shape.n / 2 : shape.n));
  PTERO_RETURN_IF_ERROR(op.set_shape(what.y, y));
  return shape;
}

namespace {

// The parts that bindings take.
Result<std::vector<Q4Part>> split_into_parts(const Q4Layer& layer, const gpu::Limits& limits) {
  const Q4Shape& shape = layer.shape;
  PTERO_ASSIGN_OR_RETURN(const uint64_t rows, rows_at_once(layer, limits));
  // One row of scales and the bias run along n too, but may start anywhere.
  PTERO_ASSIGN_OR_RETURN(
      const auto n_blocks,
      split_into_bindings("rows of a weight", shape.n, std::array{shape.row_bytes}, limits));
  const uint64_t groups = ceil_div(shape.k, shape.group);
  std::vector<Q4Part> parts;
  for (uint64_t row = 0; row < shape.m; row += rows) {
    const RowBlock m{row, std::min(rows, shape.m - row)};
    for (const RowBlock& n : n_blocks) {
      PTERO_ASSIGN_OR_RETURN(const uint64_t most, groups_at_once(layer, n.count, limits));
      for (uint64_t first = 0; first < groups; first += most) {
        parts.push_back({m, n, {first, std::min(most, groups - first)}});
      }
    }
  }
  return parts;
}

Status dispatch_gates(OpCall& op, const Q4Layer& layer, const BufferRef& x) {
  const auto m = u32(layer.shape.m);
  const auto n = u32(layer.columns());
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, uint64_t{m} * n));
  return op.dispatch(
      {{&wgsl::kSwiglu, layer.type.alias(), {}, layer.type.features}, {x, layer.what.y}, grid},
      wgsl::SwigluParams{.m = m, .n = n});
}

}  // namespace

Status dispatch_q4_linear(OpCall& op, Q4Linear linear) {
  Q4Layer layer;
  PTERO_ASSIGN_OR_RETURN(layer.shape, check_q4_linear(op, linear));
  PTERO_ASSIGN_OR_RETURN(layer.type, element_type(linear.y));
  PTERO_ASSIGN_OR_RETURN(layer.scale_type, element_type(linear.scales));
  layer.scale_row = linear.scales.shape[linear.scales.shape.rank() - 1];
  layer.shape.may_halve = linear.may_halve;
  layer.shape.half = linear.x.dtype == pte::GraphDtype::float16;
  layer.what = std::move(linear);
  Q4Linear& what = layer.what;
  const Q4Shape& shape = layer.shape;
  if (shape.m == 0 || shape.n == 0) {
    return ok_status();
  }
  PTERO_REJECT_IF(shape.k == 0, unsupported, "A linear layer of no inputs has no kernel.");
  PTERO_ASSIGN_OR_RETURN(const std::vector<Q4Part> parts,
                         split_into_parts(layer, op.device().limits));
  // What the kernel does not do beside the product, others do before and after it.
  const Q4Route route = route_of(op, layer, parts.front());
  const bool whole = parts.size() == 1 && fits_grid(op, layer, parts.front());
  if (what.norm && !(whole && route.normalises())) {
    PTERO_ASSIGN_OR_RETURN(what.x_values, op.scratch(shape.m * shape.k * sizeof(float)));
    PTERO_RETURN_IF_ERROR(dispatch_rms_norm(op, what.x, *what.norm, what.eps, *what.x_values));
    what.norm.reset();
  }
  std::optional<BufferRef> gates;
  if (what.gated && !(whole && route.gates())) {
    PTERO_ASSIGN_OR_RETURN(gates, op.scratch(shape.m * shape.n * item_size(what.y)));
    layer.y_values = gates;
    what.gated = false;
  }
  for (const Q4Part& part : parts) {
    PTERO_RETURN_IF_ERROR(dispatch_q4_part(op, layer, part));
  }
  if (gates) {
    what.gated = true;
    PTERO_RETURN_IF_ERROR(dispatch_gates(op, layer, *gates));
  }
  return ok_status();
}

}  // namespace ptero::ops
