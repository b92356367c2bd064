// SPDX-License-Identifier: BSD-3-Clause
// The attention operators: what their arguments mean.
#include <cmath>
#include <optional>

#include "graph/op_call.h"
#include "ops/attention/attention_call.h"
#include "ops/common/kernel_types.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// From argument `first` on: attn_mask, dropout_p, is_causal, scale.
struct Options {
  std::optional<TensorRef> mask;
  bool causal = false;
  double scale = 1;
};
Result<Options> read_options(OpCall& op, size_t first, uint32_t dim, bool causal_if_null) {
  Options options;
  PTERO_ASSIGN_OR_RETURN(options.mask, op.optional_tensor(first));
  PTERO_ASSIGN_OR_RETURN(const double dropout, op.number_or(first + 1, 0));
  PTERO_REJECT_IF(dropout != 0, unsupported, "Dropout ({}) is not 0.", dropout);
  options.causal = causal_if_null;
  if (!op.is_null(first + 2)) {
    PTERO_ASSIGN_OR_RETURN(options.causal, op.boolean(first + 2));
  }
  PTERO_ASSIGN_OR_RETURN(options.scale,
                         op.number_or(first + 3, 1 / std::sqrt(static_cast<double>(dim))));
  return options;
}

// Sets the strides of a mask that broadcasts to [batches, heads, rows, keys].
Status use_mask(Attention& attention, const TensorRef& mask, uint32_t batches) {
  PTERO_RETURN_IF_ERROR(require_same_type(attention.q, mask));
  const uint32_t heads = attention.heads * attention.group / batches;
  const Shape target{batches, heads, attention.rows, attention.keys};
  const auto common = graph::broadcast(mask.shape, target);
  const size_t rank = mask.shape.rank();
  PTERO_REJECT_IF(
      !common.ok() || *common != target || rank == 0 || mask.shape[rank - 1] != attention.keys,
      invalid_program, "Shape {} of the mask does not broadcast to {}.", to_string(mask.shape),
      to_string(target));
  const auto strides = graph::broadcast_strides(mask.shape, target);
  PTERO_REJECT_IF(batches > 1 && heads > 1 && strides[0] != heads * strides[1], unsupported,
                  "A mask of shape {} for queries of {} is neither the same for all heads of all "
                  "batches nor different for each.",
                  to_string(mask.shape), to_string(attention.q.shape));
  attention.mask = mask;
  attention.mask_head = heads > 1 ? strides[1] : strides[0];
  attention.mask_row = strides[2];
  return ok_status();
}

// Queries against caches [capacity, heads, dim], where row 0 is at the position in argument `arg`.
// With a mask, this says which keys count, and may leave out a cache's last ones.
Status attend_caches(OpCall& op, const Options& options, const HeadRows& rows,
                     const HeadRows& cache, const graph::Slot& position, Attention attention) {
  attention.causal = options.causal;
  attention.scale = options.scale;
  attention.rows = rows.rows;
  attention.heads = cache.heads;
  attention.group = rows.heads / cache.heads;
  attention.keys = cache.rows;
  attention.dim = rows.dim;
  attention.q_row = rows.heads * rows.dim;
  attention.q_head = rows.dim;
  attention.kv_row = cache.heads * cache.dim;
  attention.kv_head = cache.dim;
  if (!options.mask || options.causal) {
    attention.position = position;
  }
  if (options.mask) {
    const Shape& shape = options.mask->shape;
    const uint32_t columns = shape.rank() == 0 ? 0 : shape[shape.rank() - 1];
    PTERO_REJECT_IF(columns > cache.rows || columns < rows.rows, invalid_program,
                    "Number of columns ({}) of the mask does not lie between the rows of the "
                    "queries ({}) and of the cache ({}).",
                    columns, rows.rows, cache.rows);
    if (!options.causal) {
      attention.keys = columns;
    }
    PTERO_REJECT_IF(attention.keys != columns, unsupported,
                    "A mask of {} columns goes with causal attention over a cache of {} rows.",
                    columns, cache.rows);
    PTERO_RETURN_IF_ERROR(use_mask(attention, *options.mask, 1));
  }
  PTERO_RETURN_IF_ERROR(op.set_shape(attention.y, attention.q.shape));
  return dispatch_attention(op, attention);
}

Status require_heads(const TensorRef& q, const HeadRows& rows, const TensorRef& k_cache,
                     const HeadRows& cache, const TensorRef& v_cache) {
  PTERO_REJECT_IF(k_cache.shape != v_cache.shape, invalid_program,
                  "Shapes {} and {} of the key and value caches differ.", to_string(k_cache.shape),
                  to_string(v_cache.shape));
  PTERO_RETURN_IF_ERROR(require_same_type(k_cache, v_cache));
  PTERO_REJECT_IF(cache.heads == 0 || rows.heads % cache.heads != 0 || rows.dim != cache.dim,
                  invalid_program,
                  "Queries of shape {} do not go with a cache of shape {}: heads divide, elements "
                  "are equal.",
                  to_string(q.shape), to_string(k_cache.shape));
  PTERO_REJECT_IF(rows.rows > cache.rows, invalid_argument,
                  "Number of rows ({}) exceeds what the cache holds ({}).", rows.rows, cache.rows);
  return ok_status();
}

// q, k, v, k_cache, v_cache, start_pos, seq_len, attn_mask, dropout_p, is_causal, scale
Status plan_sdpa_with_kv_cache(OpCall& op) {
  Attention attention;
  PTERO_ASSIGN_OR_RETURN(attention.q, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef k, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const TensorRef v, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(attention.k, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(attention.v, op.tensor(4));
  PTERO_ASSIGN_OR_RETURN(attention.y, op.output());
  PTERO_ASSIGN_OR_RETURN(const HeadRows rows, head_rows(attention.q, "queries"));
  PTERO_ASSIGN_OR_RETURN(const HeadRows new_rows, head_rows(k, "keys"));
  PTERO_ASSIGN_OR_RETURN(const HeadRows cache, head_rows(attention.k, "key cache"));
  PTERO_RETURN_IF_ERROR(require_heads(attention.q, rows, attention.k, cache, attention.v));
  PTERO_RETURN_IF_ERROR(require_fits_cache(k, new_rows, attention.k, cache));
  PTERO_REJECT_IF(k.shape != v.shape || new_rows.rows != rows.rows, invalid_program,
                  "Queries, keys and values ({}, {} and {}) do not have the same rows.",
                  to_string(attention.q.shape), to_string(k.shape), to_string(v.shape));
  PTERO_RETURN_IF_ERROR(require_same_type(k, v));
  PTERO_REJECT_IF(rows.dim % 4 != 0, unsupported,
                  "Number of elements ({}) of a head is not a multiple of 4.", rows.dim);
  PTERO_ASSIGN_OR_RETURN(const Options options, read_options(op, 7, rows.dim, true));
  PTERO_ASSIGN_OR_RETURN(const graph::Slot position,
                         op.slot(5, 0, int64_t{cache.rows} - int64_t{rows.rows}));
  if (k.numel() > 0) {
    PTERO_RETURN_IF_ERROR(append_to_caches(op, k, v, attention.k, attention.v, position));
  }
  return attend_caches(op, options, rows, cache, position, std::move(attention));
}

// q, k_cache, v_cache, start_pos, attn_mask, dropout_p, is_causal, scale
Status plan_custom_sdpa(OpCall& op) {
  Attention attention;
  PTERO_ASSIGN_OR_RETURN(attention.q, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(attention.k, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(attention.v, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(attention.y, op.output());
  PTERO_ASSIGN_OR_RETURN(const HeadRows rows, head_rows(attention.q, "queries"));
  PTERO_ASSIGN_OR_RETURN(const HeadRows cache, head_rows(attention.k, "key cache"));
  PTERO_RETURN_IF_ERROR(require_heads(attention.q, rows, attention.k, cache, attention.v));
  PTERO_ASSIGN_OR_RETURN(const Options options, read_options(op, 4, rows.dim, false));
  PTERO_ASSIGN_OR_RETURN(const graph::Slot position,
                         op.slot(3, 0, int64_t{cache.rows} - int64_t{rows.rows}));
  return attend_caches(op, options, rows, cache, position, std::move(attention));
}

// q, k, v, mask, scale: [batches..., rows, elements], each batch on its own
Status plan_sdpa(OpCall& op) {
  Attention attention;
  PTERO_ASSIGN_OR_RETURN(attention.q, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(attention.k, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(attention.v, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(const std::optional<TensorRef> mask, op.optional_tensor(3));
  PTERO_ASSIGN_OR_RETURN(attention.y, op.output());
  const Shape& q = attention.q.shape;
  const Shape& k = attention.k.shape;
  PTERO_REJECT_IF(q.rank() != 4, invalid_program,
                  "Rank ({}) of the queries is not 4 ([batches, heads, rows, elements]).",
                  q.rank());
  PTERO_REJECT_IF(
      k != attention.v.shape || k.rank() != 4 || k[0] != q[0] || k[1] != q[1] || k[3] != q[3],
      invalid_program, "Queries, keys and values ({}, {} and {}) do not go together.", to_string(q),
      to_string(k), to_string(attention.v.shape));
  PTERO_RETURN_IF_ERROR(require_same_type(attention.k, attention.v));
  PTERO_ASSIGN_OR_RETURN(attention.scale,
                         op.number_or(4, 1 / std::sqrt(static_cast<double>(q[3]))));
  attention.rows = q[2];
  attention.heads = q[0] * q[1];
  attention.keys = k[2];
  attention.dim = q[3];
  attention.q_row = q[3];
  attention.q_head = q[2] * q[3];
  attention.kv_row = q[3];
  attention.kv_head = k[2] * q[3];
  if (mask && q.numel() > 0) {
    PTERO_RETURN_IF_ERROR(use_mask(attention, *mask, q[0]));
  }
  PTERO_RETURN_IF_ERROR(op.set_shape(attention.y, q));
  return dispatch_attention(op, attention);
}

}  // namespace

void register_attention(graph::OperatorRegistry& operators) {
  operators.add("sdpa_with_kv_cache.default", plan_sdpa_with_kv_cache, {.mutates = {3, 4}});
  operators.add("custom_sdpa.default", plan_custom_sdpa);
  operators.add("et_vk.sdpa.default", plan_sdpa);
  operators.add("update_cache.default", plan_update_cache, {.mutates = {1}});
  operators.add("update_cache_with_indices.default", plan_update_cache, {.mutates = {1}});
}

}  // namespace ptero::ops
