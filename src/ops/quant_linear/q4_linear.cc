// SPDX-License-Identifier: BSD-3-Clause
#include "ops/quant_linear/q4_linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/quant_linear/q4_any.wgsl.h"
#include "ops/quant_linear/q4_column.wgsl.h"
#include "ops/quant_linear/q4_column_rows.wgsl.h"
#include "ops/quant_linear/q4_gemv.wgsl.h"
#include "ops/quant_linear/q4_gemv_subgroup.wgsl.h"
#include "ops/quant_linear/q4_tile.wgsl.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

constexpr uint32_t kHasBias = 1;  // as in the kernels
constexpr uint32_t kAddToY = 2;

uint32_t u32(uint64_t value) {
  return static_cast<uint32_t>(value);
}

uint64_t item_size(const TensorRef& tensor) {
  return tensor.dtype == pte::GraphDtype::float16 ? 2 : 4;
}

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

// How many elements any window of a binding holds.
uint64_t window_size(uint64_t item, const gpu::Limits& limits) {
  const uint64_t slack = std::max<uint32_t>(limits.min_storage_offset_alignment, 4) + 4;
  return (limits.max_storage_binding_size - std::min(limits.max_storage_binding_size, slack)) /
         item;
}

struct Part {
  RowBlock m;
  RowBlock n;
  RowBlock groups;
};

// A planned linear layer: what holds for every part of it.
struct Layer {
  Q4Linear what;
  Q4Shape shape;
  uint64_t scale_row = 0;  // elements
  ElementType type;
  ElementType scale_type;

  uint64_t x_item() const { return what.x_values ? 4 : item_size(what.x); }
};

// What a part binds, and where in it its elements start.
struct Bound {
  std::vector<BufferRef> buffers;
  uint64_t x_first = 0;
  uint64_t y_first = 0;
  uint64_t s_first = 0;
  uint64_t bias_first = 0;
  uint32_t flags = 0;
};

template <typename Params>
Status dispatch_words(OpCall& op, const Layer& layer, const Part& part, gpu::KernelKey key,
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
                            .y_row = u32(shape.n),
                            .y_first = u32(bound.y_first),
                            .s_row = u32(layer.scale_row),
                            .s_first = u32(bound.s_first),
                            .bias_first = u32(bound.bias_first),
                            .flags = bound.flags});
}

Status dispatch_any(OpCall& op, const Layer& layer, const Part& part, gpu::KernelKey key,
                    Bound bound) {
  const Q4Shape& shape = layer.shape;
  const uint64_t first = part.groups.first * shape.group;
  const uint64_t end = std::min((part.groups.first + part.groups.count) * shape.group, shape.k);
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, part.m.count * part.n.count));
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

Bound bind_part(const Layer& layer, const Part& part, const gpu::Limits& limits) {
  const Q4Shape& shape = layer.shape;
  const Q4Linear& what = layer.what;
  const Window x = bind_window(what.x_values.value_or(BufferRef(what.x)), layer.x_item(),
                               part.m.first * shape.k, part.m.count * shape.k, limits);
  const Window y = bind_window(what.y, item_size(what.y), part.m.first * shape.n,
                               part.m.count * shape.n, limits);
  const Window scales = bind_window(
      what.scales, item_size(what.scales), part.groups.first * layer.scale_row + part.n.first,
      (part.groups.count - 1) * layer.scale_row + part.n.count, limits);
  Window bias{x.buffer, 0};
  uint32_t flags = part.groups.first > 0 ? kAddToY : 0;
  if (what.bias && part.groups.first == 0) {
    bias = bind_window(*what.bias, item_size(*what.bias), part.n.first, part.n.count, limits);
    flags |= kHasBias;
  }
  return {{x.buffer, bind_rows(what.weight, part.n, shape.row_bytes), scales.buffer, bias.buffer,
           y.buffer},
          x.first,
          y.first + part.n.first,
          scales.first,
          bias.first,
          flags};
}

Status dispatch_part(OpCall& op, const Layer& layer, const Part& part) {
  const gpu::Limits& limits = op.device().limits;
  const Q4Shape& shape = layer.shape;
  const Q4Linear& what = layer.what;
  Bound bound = bind_part(layer, part, limits);
  const Q4Route route = choose_q4_route(
      {part.m.count, part.n.count, shape.k, shape.group, shape.row_bytes}, op.device());
  gpu::KernelKey key{.source = &wgsl::kQ4Any,
                     .prelude = fmt::format("alias X = {};\n{}alias S = {};\n",
                                            what.x_values ? "f32" : layer.type.name,
                                            layer.type.alias(), layer.scale_type.name),
                     .overrides = {{"swapped", what.swapped ? 1.0 : 0.0}},
                     .features = layer.type.features | layer.scale_type.features};
  if (route.kernel == Q4Kernel::any) {
    return dispatch_any(op, layer, part, std::move(key), std::move(bound));
  }
  key.prelude += load_prelude(route.words);
  const uint64_t m_blocks = ceil_div<uint64_t>(part.m.count, route.rows);
  const uint64_t n_blocks = ceil_div<uint64_t>(part.n.count, route.columns);
  const bool gemv = route.kernel == Q4Kernel::gemv;
  auto grid = graph::fold_grid(gemv ? n_blocks : m_blocks * n_blocks, limits);
  PTERO_REJECT_IF(!grid, unsupported, "Number of tiles ({}) of the product exceeds a grid.",
                  m_blocks * n_blocks);
  switch (route.kernel) {
    case Q4Kernel::column:
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
          fmt::format("const kRows = {}u;\nconst kColumns = {}u;\n", route.rows, route.columns);
      key.overrides.push_back({"wg_size", static_cast<double>(route.threads)});
      grid->z = u32(m_blocks);
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
    case Q4Kernel::any:
      break;
  }
  return ok_status();
}

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
Result<uint64_t> groups_at_once(const Layer& layer, uint64_t columns, const gpu::Limits& limits) {
  const uint64_t room = window_size(item_size(layer.what.scales), limits);
  PTERO_REJECT_IF(room < columns, unsupported,
                  "A binding of this adapter (at most {} bytes) is too small for the scales of {} "
                  "rows of a weight.",
                  limits.max_storage_binding_size, columns);
  return (room - columns) / layer.scale_row + 1;
}

// The same for rows of x and y.
Result<uint64_t> rows_at_once(const Layer& layer, const gpu::Limits& limits) {
  const Q4Shape& shape = layer.shape;
  const uint64_t x_item = layer.x_item();
  const uint64_t y_item = item_size(layer.what.y);
  const uint64_t limit = limits.max_storage_binding_size;
  if (shape.m <= limit / (shape.k * x_item) && shape.m <= limit / (shape.n * y_item)) {
    return shape.m;
  }
  const uint64_t rows =
      std::min(window_size(x_item, limits) / shape.k, window_size(y_item, limits) / shape.n);
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
  Shape y = what.x.shape;
  y.set(rank - 1, u32(shape.n));
  PTERO_RETURN_IF_ERROR(op.set_shape(what.y, y));
  return shape;
}

Status dispatch_q4_linear(OpCall& op, Q4Linear linear) {
  Layer layer;
  PTERO_ASSIGN_OR_RETURN(layer.shape, check_q4_linear(op, linear));
  PTERO_ASSIGN_OR_RETURN(layer.type, element_type(linear.y));
  PTERO_ASSIGN_OR_RETURN(layer.scale_type, element_type(linear.scales));
  layer.scale_row = linear.scales.shape[linear.scales.shape.rank() - 1];
  layer.what = std::move(linear);
  const Q4Shape& shape = layer.shape;
  if (shape.m == 0 || shape.n == 0) {
    return ok_status();
  }
  PTERO_REJECT_IF(shape.k == 0, unsupported, "A linear layer of no inputs has no kernel.");
  const gpu::Limits& limits = op.device().limits;
  PTERO_ASSIGN_OR_RETURN(const uint64_t rows, rows_at_once(layer, limits));
  // One row of scales and the bias run along n too, but may start anywhere.
  PTERO_ASSIGN_OR_RETURN(
      const auto n_blocks,
      split_into_bindings("rows of a weight", shape.n, std::array{shape.row_bytes}, limits));
  const uint64_t groups = ceil_div(shape.k, shape.group);
  for (uint64_t row = 0; row < shape.m; row += rows) {
    const RowBlock m{row, std::min(rows, shape.m - row)};
    for (const RowBlock& n : n_blocks) {
      PTERO_ASSIGN_OR_RETURN(const uint64_t most, groups_at_once(layer, n.count, limits));
      for (uint64_t first = 0; first < groups; first += most) {
        PTERO_RETURN_IF_ERROR(
            dispatch_part(op, layer, {m, n, {first, std::min(most, groups - first)}}));
      }
    }
  }
  return ok_status();
}

}  // namespace ptero::ops
