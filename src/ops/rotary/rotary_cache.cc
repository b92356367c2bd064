// SPDX-License-Identifier: BSD-3-Clause
// ptero.rotary_kv_cache: what stands between one 4-bit layer for queries, keys and values and
// attention. No file has it; passes make it.
#include "ops/rotary/rotary_cache.h"

#include <optional>

#include "ops/common/kernel_types.h"
#include "ops/rotary/rotary_cache.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// [1, rows, heads, elements] or without the 1
Status require_row_heads(const TensorRef& tensor, std::string_view what) {
  const size_t rank = tensor.shape.rank();
  PTERO_REJECT_IF(rank != 3 && (rank != 4 || tensor.shape[0] != 1), invalid_program,
                  "Shape {} of the {} is not [1, rows, heads, elements], nor without the 1.",
                  to_string(tensor.shape), what);
  PTERO_REJECT_IF(!tensor.is_float(), unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(tensor.dtype), tensor.id);
  return ok_status();
}

}  // namespace

// qkv [..., rows, (heads + 2 kv_heads) * elements], cos, sin, k_cache, v_cache, start_pos,
// table_pos (Null: the tables have a row for each of qkv's), halves; produces the queries, whose
// largest shape says how many heads there are
Status plan_rotary_kv_cache(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef qkv, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef cosines, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const TensorRef sines, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(const RotaryTable tables, rotary_table(cosines, sines));
  PTERO_ASSIGN_OR_RETURN(const TensorRef k_cache, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(const TensorRef v_cache, op.tensor(4));
  PTERO_ASSIGN_OR_RETURN(const bool halves, op.boolean(7));
  PTERO_ASSIGN_OR_RETURN(TensorRef q, op.output());
  PTERO_RETURN_IF_ERROR(require_row_heads(k_cache, "cache of keys"));
  PTERO_RETURN_IF_ERROR(require_row_heads(q, "queries"));
  PTERO_RETURN_IF_ERROR(require_same_type(k_cache, v_cache));
  PTERO_RETURN_IF_ERROR(require_same_type(qkv, q));

  const Shape bound = op.bound(q);
  const size_t rank = bound.rank();
  const size_t cache_rank = k_cache.shape.rank();
  const size_t qkv_rank = qkv.shape.rank();
  const uint32_t heads = bound[rank - 2];
  const uint32_t dim = bound[rank - 1];
  const uint32_t kv_heads = k_cache.shape[cache_rank - 2];
  const uint32_t capacity = k_cache.shape[cache_rank - 3];
  const uint64_t width = (uint64_t{heads} + 2 * uint64_t{kv_heads}) * dim;
  PTERO_REJECT_IF(
      k_cache.shape != v_cache.shape || k_cache.shape[cache_rank - 1] != dim || qkv_rank < 2 ||
          qkv.shape[qkv_rank - 1] != width || qkv.shape[qkv_rank - 2] * width != qkv.numel(),
      invalid_program,
      "Rows of shape {} are no {} queries of {} elements with keys and values for "
      "caches of shapes {} and {}.",
      to_string(qkv.shape), heads, dim, to_string(k_cache.shape), to_string(v_cache.shape));
  const uint32_t rows = qkv.shape[qkv_rank - 2];
  PTERO_REJECT_IF(dim % 2 != 0 || tables.width != (halves ? dim : dim / 2), unsupported,
                  "Rotating {} of a head's {} elements has no kernel here.", tables.width, dim);
  PTERO_REJECT_IF(rows > tables.rows, invalid_program,
                  "Number of rows ({}) exceeds those of the tables ({}).", rows, tables.rows);
  PTERO_REJECT_IF(rows > capacity, invalid_argument,
                  "Number of rows ({}) exceeds what the cache holds ({}).", rows, capacity);
  Shape shape = bound;
  shape.set(rank - 3, rows);
  PTERO_RETURN_IF_ERROR(op.set_shape(q, shape));

  PTERO_ASSIGN_OR_RETURN(const graph::Slot position,
                         op.slot(5, 0, int64_t{capacity} - int64_t{rows}));
  std::optional<graph::Slot> table_position;
  if (!op.is_null(6)) {
    PTERO_ASSIGN_OR_RETURN(table_position, op.slot(6, 0, int64_t{tables.rows} - int64_t{rows}));
  }
  if (qkv.numel() == 0) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(qkv));
  PTERO_ASSIGN_OR_RETURN(const ElementType table, element_type(cosines));
  PTERO_ASSIGN_OR_RETURN(const ElementType cache, element_type(k_cache));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, qkv.numel() / 2));
  return op.dispatch(
      {{&wgsl::kRotaryCache,
        fmt::format("{}alias F = {};\nalias C = {};\n", type.alias(), table.name, cache.name),
        {{"halves", halves ? 1.0 : 0.0}, {"positioned", table_position ? 1.0 : 0.0}},
        type.features | table.features | cache.features},
       {qkv, cosines, sines, op.slots(), q, k_cache, v_cache},
       grid},
      wgsl::RotaryCacheParams{.rows = rows,
                              .q_heads = heads,
                              .kv_heads = kv_heads,
                              .dim = dim,
                              .table_rows = tables.rows,
                              .table_row = tables.width,
                              .capacity = capacity,
                              .slot = position.index,
                              .table_slot = table_position ? table_position->index : 0});
}

}  // namespace ptero::ops
