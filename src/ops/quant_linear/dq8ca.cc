// SPDX-License-Identifier: BSD-3-Clause
#include "ops/quant_linear/dq8ca.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "ops/common/adapter_routes.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/quant_linear/dot_tile.wgsl.h"
#include "ops/quant_linear/fake_quantize.wgsl.h"
#include "ops/quant_linear/q4_linear.h"
#include "ops/quant_linear/q4_part.h"
#include "ops/quant_linear/quantize_rows.wgsl.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// A layer, and what turns rows of x into int8.
struct Dq8caLinear {
  Q4Linear linear;
  TensorRef x_scales;  // one a row
  TensorRef x_zeros;
  TensorRef sums;  // of the weights of a group
};

Status check_rows(const Dq8caLinear& layer) {
  const TensorRef& x = layer.linear.x;
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(rank == 0 || !x.is_float() || !layer.x_scales.is_float(), unsupported,
                  "Element types ({} and {}) of x {} and its scales have no kernel in this "
                  "operator.",
                  pte::name_of(x.dtype), pte::name_of(layer.x_scales.dtype), to_string(x.shape));
  PTERO_REJECT_IF(layer.x_zeros.dtype != pte::GraphDtype::int8, unsupported,
                  "Element type ({}) of zero points is not int8.",
                  pte::name_of(layer.x_zeros.dtype));
  const uint64_t rows = x.shape.numel(0, rank - 1);
  PTERO_REJECT_IF(layer.x_scales.numel() != rows || layer.x_zeros.numel() != rows, invalid_program,
                  "Numbers of scales ({}) and zero points ({}) are not that of rows of x ({}).",
                  layer.x_scales.numel(), layer.x_zeros.numel(), rows);
  return ok_status();
}

// The types of x and of its scales, for the kernels that quantise.
Result<gpu::KernelKey> rows_key(const Dq8caLinear& layer, const gpu::KernelSource& source) {
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(layer.linear.x));
  PTERO_ASSIGN_OR_RETURN(const ElementType scale_type, element_type(layer.x_scales));
  return gpu::KernelKey{.source = &source,
                        .prelude = fmt::format("{}alias S = {};\n", type.alias(), scale_type.name),
                        .features = type.features | scale_type.features};
}

// Whether packed dot products serve this layer: with few rows, reading the weights is what takes
// time; a CPU has no use for them; what is split over bindings goes the other way.
bool takes_dot_products(const Dq8caLinear& layer, const Q4Shape& shape,
                        const graph::DeviceFacts& device) {
  const Q4Linear& linear = layer.linear;
  const Shape& sums = layer.sums.shape;
  const uint64_t groups = ceil_div(shape.k, shape.group);
  const uint64_t largest = std::max({linear.x.bytes(), linear.weight.bytes(), linear.scales.bytes(),
                                     layer.sums.bytes(), linear.y.bytes()});
  return route_for(Work::q8_products, device).route == "packed" &&
         is_tiled(choose_q4_route(shape, device).kernel) &&
         (shape.group % 32 == 0 || shape.group >= shape.k) &&
         layer.sums.dtype == pte::GraphDtype::int32 && sums.rank() == 2 && sums[0] >= groups &&
         sums[1] >= shape.n && largest <= device.limits.max_storage_binding_size;
}

Status dispatch_dot_products(OpCall& op, const Dq8caLinear& layer, const Q4Shape& shape) {
  const Q4Linear& linear = layer.linear;
  const uint64_t words = shape.k / 8;
  PTERO_ASSIGN_OR_RETURN(const BufferRef rows, op.scratch(shape.m * shape.k));
  PTERO_ASSIGN_OR_RETURN(gpu::KernelKey quantize, rows_key(layer, wgsl::kQuantizeRows));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid quantize_grid, linear_grid(op, shape.m * words));
  PTERO_RETURN_IF_ERROR(op.dispatch(
      {std::move(quantize), {linear.x, layer.x_scales, layer.x_zeros, rows}, quantize_grid},
      wgsl::QuantizeRowsParams{.n = u32(shape.m * words), .width = u32(words)}));

  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(linear.y));
  PTERO_ASSIGN_OR_RETURN(const ElementType scale_type, element_type(linear.scales));
  PTERO_ASSIGN_OR_RETURN(const ElementType x_scale_type, element_type(layer.x_scales));
  const Q4Route route = choose_q4_route(shape, op.device());
  const uint64_t tiles =
      ceil_div<uint64_t>(shape.m, route.rows) * ceil_div<uint64_t>(shape.n, route.columns);
  const auto grid = graph::fold_grid(tiles, op.device().limits);
  PTERO_REJECT_IF(!grid, unsupported, "Number of tiles ({}) of the product exceeds a grid.", tiles);
  gpu::KernelKey key{.source = &wgsl::kDotTile,
                     .prelude = fmt::format("{}alias S = {};\nalias XS = {};\n", type.alias(),
                                            scale_type.name, x_scale_type.name),
                     .overrides = {{"side", std::sqrt(route.threads)}},
                     .features = type.features | scale_type.features | x_scale_type.features};
  key.features.insert(gpu::Feature::packed_dot);
  return op.dispatch(
      {std::move(key),
       {rows, linear.weight, linear.scales, layer.sums, layer.x_scales, layer.x_zeros,
        linear.bias.value_or(linear.x), linear.y},
       *grid},
      wgsl::DotTileParams{.m = u32(shape.m),
                          .n = u32(shape.n),
                          .words = u32(words),
                          .w_row = u32(shape.row_bytes / 4),
                          .group_words = u32(ceil_div<uint64_t>(shape.group, 8)),
                          .s_row = linear.scales.shape[linear.scales.shape.rank() - 1],
                          .sums_row = layer.sums.shape[1],
                          .flags = linear.bias ? 1u : 0u});
}

// Every shape and device: the numbers that the bytes stand for take the place of x.
Status dispatch_dequantized(OpCall& op, Dq8caLinear layer, const Q4Shape& shape) {
  const uint64_t row_bytes = shape.k * 4;
  if (shape.m > 0 && shape.k > 0) {
    PTERO_ASSIGN_OR_RETURN(const BufferRef numbers, op.scratch(shape.m * row_bytes));
    PTERO_ASSIGN_OR_RETURN(const gpu::KernelKey key, rows_key(layer, wgsl::kFakeQuantize));
    const uint64_t x_bytes = layer.linear.x.bytes() / shape.m;
    PTERO_ASSIGN_OR_RETURN(const auto blocks,
                           split_into_bindings("rows of x", shape.m, std::array{x_bytes, row_bytes},
                                               op.device().limits));
    for (const RowBlock& block : blocks) {
      const uint64_t n = block.count * shape.k;
      BufferRef part = numbers;
      part.offset = block.first * row_bytes;
      part.size = block.count * row_bytes;
      PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, n));
      PTERO_RETURN_IF_ERROR(op.dispatch(
          {key,
           {bind_rows(layer.linear.x, block, x_bytes), layer.x_scales, layer.x_zeros, part},
           grid},
          wgsl::FakeQuantizeParams{.n = u32(n), .width = u32(shape.k), .first = u32(block.first)}));
    }
    layer.linear.x_values = numbers;
  }
  return dispatch_q4_linear(op, std::move(layer.linear));
}

}  // namespace

Status plan_dq8ca_q4gsw(OpCall& op) {
  Dq8caLinear layer;
  PTERO_ASSIGN_OR_RETURN(layer.linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(layer.x_scales, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(layer.x_zeros, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(layer.linear.weight, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(layer.sums, op.tensor(4));
  PTERO_ASSIGN_OR_RETURN(layer.linear.scales, op.tensor(5));
  PTERO_ASSIGN_OR_RETURN(layer.linear.group_size, op.integer(6));
  PTERO_ASSIGN_OR_RETURN(layer.linear.bias, op.optional_tensor(7));
  PTERO_ASSIGN_OR_RETURN(layer.linear.y, op.output());
  PTERO_RETURN_IF_ERROR(check_rows(layer));
  PTERO_ASSIGN_OR_RETURN(const Q4Shape shape, check_q4_linear(op, layer.linear));
  if (shape.m > 0 && shape.n > 0 && takes_dot_products(layer, shape, op.device())) {
    return dispatch_dot_products(op, layer, shape);
  }
  return dispatch_dequantized(op, std::move(layer), shape);
}

}  // namespace ptero::ops
