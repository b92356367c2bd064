// SPDX-License-Identifier: BSD-3-Clause
#include "ops/quant_linear/q4_part.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "ops/common/adapter_routes.h"
#include "ops/quant_linear/q4_any.wgsl.h"
#include "ops/quant_linear/q4_column.wgsl.h"
#include "ops/quant_linear/q4_column_rows.wgsl.h"
#include "ops/quant_linear/q4_gemv.wgsl.h"
#include "ops/quant_linear/q4_gemv_subgroup.wgsl.h"
#include "ops/quant_linear/q4_matrix.wgsl.h"
#include "ops/quant_linear/q4_steel.wgsl.h"
#include "ops/quant_linear/q4_steel_accumulate.wgsl.h"
#include "ops/quant_linear/q4_steel_packed.wgsl.h"
#include "ops/quant_linear/q4_tile.wgsl.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;
using graph::TensorRef;

constexpr uint32_t kHasBias = 1;  // as in the kernels
constexpr uint32_t kAddToY = 2;

// Elements [first, first + count) of a buffer, as a binding that starts where one may, and the
// index of `first` in it.
struct Window {
  BufferRef buffer;
  uint64_t first;
};
Window bind_window(BufferRef buffer, uint64_t item, uint64_t first, uint64_t count,
                   const gpu::Limits& limits) {
  const uint64_t alignment = std::max<uint32_t>(limits.min_storage_offset_alignment, 4);
  buffer.offset = first * item / alignment * alignment;
  buffer.size = ceil_div<uint64_t>((first + count) * item, 4) * 4 - buffer.offset;
  return {buffer, first - buffer.offset / item};
}

// What a part binds, and where in it its elements start.
struct Bound {
  std::vector<BufferRef> buffers;
  uint64_t x_first = 0;
  uint64_t y_first = 0;
  uint64_t s_first = 0;
  uint64_t bias_first = 0;
  uint64_t bias_row = 0;
  uint32_t flags = 0;
};

template <typename Params>
Status dispatch_words(OpCall& op, const Q4Layer& layer, const Q4Part& part, gpu::KernelKey key,
                      Bound bound, gpu::Grid grid) {
  const Q4Shape& shape = layer.shape;
  const uint64_t group_words = ceil_div<uint64_t>(shape.group, 8);
  const uint64_t first = part.groups.first * group_words;
  const uint64_t end = std::min((part.groups.first + part.groups.count) * group_words, shape.k / 8);
  return op.dispatch({std::move(key), std::move(bound.buffers), grid},
                     Params{.m = u32(part.m.count),
                            .n = u32(part.n.count),
                            .words = u32(end - first),
                            .w_row = u32(shape.row_bytes / 4),
                            .w_first = u32(first),
                            .group_words = u32(group_words),
                            .x_row = u32(shape.k / 4),
                            .x_first = u32(bound.x_first / 4 + 2 * first),
                            .y_row = u32(layer.columns()),
                            .y_first = u32(bound.y_first),
                            .s_row = u32(layer.scale_row),
                            .s_first = u32(bound.s_first),
                            .bias_first = u32(bound.bias_first),
                            .bias_row = u32(bound.bias_row),
                            .flags = bound.flags,
                            .eps = static_cast<float>(layer.what.eps)});
}

Status dispatch_any(OpCall& op, const Q4Layer& layer, const Q4Part& part, gpu::KernelKey key,
                    Bound bound, gpu::Grid grid) {
  const Q4Shape& shape = layer.shape;
  const uint64_t first = part.groups.first * shape.group;
  const uint64_t end = std::min((part.groups.first + part.groups.count) * shape.group, shape.k);
  return op.dispatch({std::move(key), std::move(bound.buffers), grid},
                     wgsl::Q4AnyParams{.m = u32(part.m.count),
                                       .n = u32(part.n.count),
                                       .k = u32(end - first),
                                       .k_first = u32(first),
                                       .x_row = u32(shape.k),
                                       .x_first = u32(bound.x_first),
                                       .w_row = u32(shape.row_bytes),
                                       .y_row = u32(shape.n),
                                       .y_first = u32(bound.y_first),
                                       .group = u32(shape.group),
                                       .s_row = u32(layer.scale_row),
                                       .s_first = u32(bound.s_first),
                                       .bias_first = u32(bound.bias_first),
                                       .bias_row = u32(bound.bias_row),
                                       .flags = bound.flags});
}

std::string load_prelude(uint32_t words) {
  if (words == 1) {
    return "const kWords = 1u;\nalias W = u32;\n"
           "fn word_of(load: W, i: u32) -> u32 { return load; }\n";
  }
  return fmt::format(
      "const kWords = {0}u;\nalias W = vec{0}u;\n"
      "fn word_of(load: W, i: u32) -> u32 {{ return load[i]; }}\n",
      words);
}

void set_product_type(bool half, gpu::KernelKey& key) {
  key.prelude += half ? "alias F = f16;\n" : "alias F = f32;\n";
  if (half) {
    key.features.insert(gpu::Feature::shader_f16);
  }
}

void set_matrices(const Q4Route& route, gpu::KernelKey& key) {
  const Q4Matrices& each = route.matrices;
  const auto constant = [&](std::string_view name, uint32_t value) {
    key.prelude += fmt::format("const {} = {}u;\n", name, value);
  };
  constant("kM", each.m);
  constant("kN", each.n);
  constant("kK", each.k);
  constant("kTileM", route.rows);
  constant("kTileN", route.columns);
  constant("kRowsY", each.rows);
  constant("kSplit", each.split);
  constant("kChunks", each.chunks());
  constant("kLanes", each.lanes);
  key.features |= kMatrixFeatures;
}

Bound bind_part(const Q4Layer& layer, const Q4Part& part, const gpu::Limits& limits) {
  const Q4Shape& shape = layer.shape;
  const Q4Linear& what = layer.what;
  const Window x = bind_window(what.x_values.value_or(BufferRef(what.x)), layer.x_item(),
                               part.m.first * shape.k, part.m.count * shape.k, limits);
  const uint64_t columns = layer.columns();
  const Window y = bind_window(layer.y(), item_size(what.y), part.m.first * columns,
                               part.m.count * columns, limits);
  const Window scales = bind_window(
      what.scales, item_size(what.scales), part.groups.first * layer.scale_row + part.n.first,
      (part.groups.count - 1) * layer.scale_row + part.n.count, limits);
  Window bias{x.buffer, 0};
  uint32_t flags = part.groups.first > 0 ? kAddToY : 0;
  uint64_t bias_row = 0;
  if (what.bias && part.groups.first == 0) {
    bias = bind_window(*what.bias, item_size(*what.bias), part.n.first, part.n.count, limits);
    flags |= kHasBias;
  } else if (what.residual && part.groups.first == 0) {
    bias = bind_window(*what.residual, item_size(*what.residual),
                       part.m.first * shape.n + part.n.first,
                       (part.m.count - 1) * shape.n + part.n.count, limits);
    bias_row = shape.n;
    flags |= kHasBias;
  }
  return {{x.buffer, bind_rows(what.weight, part.n, shape.row_bytes), scales.buffer, bias.buffer,
           y.buffer},
          x.first,
          y.first + part.n.first,
          scales.first,
          bias.first,
          bias_row,
          flags};
}

// The grid of a part; empty when it has more workgroups than a grid.
std::optional<gpu::Grid> grid_of(const Q4Route& route, const Q4Part& part,
                                 const gpu::Limits& limits) {
  const uint64_t m_blocks = ceil_div<uint64_t>(part.m.count, route.rows);
  const uint64_t n_blocks = ceil_div<uint64_t>(part.n.count, route.columns);
  if (route.kernel == Q4Kernel::any) {
    return graph::fold_grid(ceil_div<uint64_t>(part.m.count * part.n.count, kThreads), limits);
  }
  if (route.kernel != Q4Kernel::gemv) {
    return graph::fold_grid(m_blocks * n_blocks, limits);
  }
  auto grid = graph::fold_grid(n_blocks, limits);
  if (!grid || m_blocks > limits.max_workgroups_per_dimension) {
    return std::nullopt;
  }
  grid->z = u32(m_blocks);
  return grid;
}

// The first and the second half of a block, the second from a multiple of `step` on; the second is
// empty when there is none.
std::pair<RowBlock, RowBlock> halves(const RowBlock& block, uint64_t step) {
  const uint64_t first = std::min(ceil_div<uint64_t>(block.count, 2 * step) * step, block.count);
  return {{block.first, first}, {block.first + first, block.count - first}};
}

// What no grid takes at once, in two parts: along x down to a tile, then along the weight.
Status dispatch_halves(OpCall& op, const Q4Layer& layer, const Q4Part& part) {
  constexpr uint64_t kRowStep = 64;
  constexpr uint64_t kColumnStep = 256;
  // Rows of the weight between places where a binding may start.
  const uint64_t alignment = std::max<uint32_t>(op.device().limits.min_storage_offset_alignment, 4);
  const uint64_t aligned = alignment / std::gcd(alignment, layer.shape.row_bytes);
  const uint64_t step = part.m.count > 1 ? ceil_div(kColumnStep, aligned) * aligned : aligned;
  const bool by_columns = part.m.count <= kRowStep && part.n.count > step;
  const auto [first, second] =
      by_columns ? halves(part.n, step) : halves(part.m, part.m.count > kRowStep ? kRowStep : 1);
  PTERO_REJECT_IF(
      second.count == 0, unsupported,
      "Number of workgroups for a row of a product ({} elements) exceeds a grid of this "
      "adapter (at most {} a dimension).",
      part.n.count, op.device().limits.max_workgroups_per_dimension);
  for (const RowBlock& half : {first, second}) {
    Q4Part smaller = part;
    (by_columns ? smaller.n : smaller.m) = half;
    PTERO_RETURN_IF_ERROR(dispatch_q4_part(op, layer, smaller));
  }
  return ok_status();
}

}  // namespace

Q4Route route_of(const OpCall& op, const Q4Layer& layer, const Q4Part& part) {
  const Q4Shape& shape = layer.shape;
  return choose_q4_route({part.m.count, part.n.count, shape.k, shape.group, shape.row_bytes,
                          shape.may_halve, shape.half},
                         op.device());
}

bool fits_grid(const OpCall& op, const Q4Layer& layer, const Q4Part& part) {
  return grid_of(route_of(op, layer, part), part, op.device().limits).has_value();
}

Status dispatch_q4_part(OpCall& op, const Q4Layer& layer, const Q4Part& part) {
  const gpu::Limits& limits = op.device().limits;
  const Q4Linear& what = layer.what;
  const Q4Route route = route_of(op, layer, part);
  const auto grid = grid_of(route, part, limits);
  if (!grid) {
    return dispatch_halves(op, layer, part);
  }
  Bound bound = bind_part(layer, part, limits);
  gpu::KernelKey key{.source = &wgsl::kQ4Any,
                     .prelude = fmt::format("alias X = {};\n{}alias S = {};\n",
                                            what.x_values ? "f32" : layer.type.name,
                                            layer.type.alias(), layer.scale_type.name),
                     .overrides = {{"swapped", what.swapped ? 1.0 : 0.0}},
                     .features = layer.type.features | layer.scale_type.features};
  if (route.kernel == Q4Kernel::any) {
    return dispatch_any(op, layer, part, std::move(key), std::move(bound), *grid);
  }
  key.prelude += load_prelude(route.words);
  switch (route.kernel) {
    case Q4Kernel::column:
      key.prelude += fmt::format("const kGated = {};\n", what.gated);
      if (route.rows > 1) {
        key.source = &wgsl::kQ4ColumnRows;
        return dispatch_words<wgsl::Q4ColumnRowsParams>(op, layer, part, std::move(key),
                                                        std::move(bound), *grid);
      }
      key.source = &wgsl::kQ4Column;
      return dispatch_words<wgsl::Q4ColumnParams>(op, layer, part, std::move(key), std::move(bound),
                                                  *grid);
    case Q4Kernel::gemv:
      key.prelude +=
          fmt::format("const kRows = {}u;\nconst kColumns = {}u;\n", route.rows, route.columns) +
          fmt::format("const kNormed = {};\nconst kGated = {};\n", what.norm.has_value(),
                      what.gated);
      bound.buffers.push_back(what.norm ? BufferRef(*what.norm) : bound.buffers[0]);
      key.overrides.push_back({"wg_size", static_cast<double>(route.threads)});
      if (route.subgroups) {
        key.source = &wgsl::kQ4GemvSubgroup;
        key.features.insert(gpu::Feature::subgroups);
        return dispatch_words<wgsl::Q4GemvSubgroupParams>(op, layer, part, std::move(key),
                                                          std::move(bound), *grid);
      }
      key.source = &wgsl::kQ4Gemv;
      return dispatch_words<wgsl::Q4GemvParams>(op, layer, part, std::move(key), std::move(bound),
                                                *grid);
    case Q4Kernel::tile:
      key.source = &wgsl::kQ4Tile;
      key.overrides.push_back({"side", std::sqrt(route.threads)});
      return dispatch_words<wgsl::Q4TileParams>(op, layer, part, std::move(key), std::move(bound),
                                                *grid);
    case Q4Kernel::steel:
    case Q4Kernel::steel_f16:
      key.source = &wgsl::kQ4Steel;
      set_product_type(route.kernel != Q4Kernel::steel, key);
      return dispatch_words<wgsl::Q4SteelParams>(op, layer, part, std::move(key), std::move(bound),
                                                 *grid);
    case Q4Kernel::steel_f16_packed:
      key.source = &wgsl::kQ4SteelPacked;
      set_product_type(true, key);
      return dispatch_words<wgsl::Q4SteelPackedParams>(op, layer, part, std::move(key),
                                                       std::move(bound), *grid);
    case Q4Kernel::steel_f16_accumulate:
      key.source = &wgsl::kQ4SteelAccumulate;
      set_product_type(true, key);
      return dispatch_words<wgsl::Q4SteelAccumulateParams>(op, layer, part, std::move(key),
                                                           std::move(bound), *grid);
    case Q4Kernel::matrix:
      key.source = &wgsl::kQ4Matrix;
      set_matrices(route, key);
      key.prelude += fmt::format("const kGated = {};\n", what.gated);
      return dispatch_words<wgsl::Q4MatrixParams>(op, layer, part, std::move(key), std::move(bound),
                                                  *grid);
    case Q4Kernel::any:
      break;
  }
  return ok_status();
}

uint64_t q4_window_size(uint64_t item, const gpu::Limits& limits) {
  const uint64_t slack = std::max<uint32_t>(limits.min_storage_offset_alignment, 4) + 4;
  return (limits.max_storage_binding_size - std::min(limits.max_storage_binding_size, slack)) /
         item;
}

}  // namespace ptero::ops
