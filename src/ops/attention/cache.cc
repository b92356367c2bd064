// SPDX-License-Identifier: BSD-3-Clause
// Writing into KV caches.
#include <string>

#include "ops/attention/attention_call.h"
#include "ops/attention/cache_append.wgsl.h"
#include "ops/attention/cache_update.wgsl.h"
#include "ops/common/kernel_types.h"

namespace ptero::ops {

using graph::OpCall;
using graph::TensorRef;

Result<HeadRows> head_rows(const TensorRef& tensor, std::string_view what) {
  const graph::Shape& shape = tensor.shape;
  const size_t rank = shape.rank();
  PTERO_REJECT_IF(rank != 3 && rank != 4, invalid_program,
                  "Rank ({}) of the {} is not 4 ([1, rows, heads, elements]), nor 3 without the 1.",
                  rank, what);
  PTERO_REJECT_IF(rank == 4 && shape[0] != 1, unsupported, "Batch ({}) of the {} is not 1.",
                  shape[0], what);
  return HeadRows{shape[rank - 3], shape[rank - 2], shape[rank - 1]};
}

Status require_fits_cache(const TensorRef& value, const HeadRows& rows, const TensorRef& cache,
                          const HeadRows& cache_rows) {
  for (const TensorRef* tensor : {&value, &cache}) {
    PTERO_REJECT_IF(!tensor->is_float(), unsupported,
                    "Element type ({}) of tensor {} has no kernel in this operator.",
                    pte::name_of(tensor->dtype), tensor->id);
  }
  PTERO_REJECT_IF(rows.heads != cache_rows.heads || rows.dim != cache_rows.dim, invalid_program,
                  "Rows of {} (shape {}) do not fit into a cache of shape {}.", value.id,
                  to_string(value.shape), to_string(cache.shape));
  PTERO_REJECT_IF(rows.rows > cache_rows.rows, invalid_argument,
                  "Number of rows ({}) exceeds what the cache holds ({}).", rows.rows,
                  cache_rows.rows);
  return ok_status();
}

namespace {

// Types of a kernel that converts what it moves, in vectors of `width`.
struct MoveTypes {
  std::string prelude;
  gpu::FeatureSet features;
};
Result<MoveTypes> move_types(const TensorRef& value, const TensorRef& cache, uint32_t width) {
  PTERO_ASSIGN_OR_RETURN(const ElementType from, element_type(value));
  PTERO_ASSIGN_OR_RETURN(const ElementType to, element_type(cache));
  MoveTypes types;
  types.prelude = width == 1 ? fmt::format("alias T = {};\nalias C = {};\n", from.name, to.name)
                             : fmt::format("alias T = vec{0}<{1}>;\nalias C = vec{0}<{2}>;\n",
                                           width, from.name, to.name);
  types.features = from.features | to.features;
  return types;
}

}  // namespace

Status append_to_caches(OpCall& op, const TensorRef& k, const TensorRef& v,
                        const TensorRef& k_cache, const TensorRef& v_cache,
                        const graph::Slot& position) {
  PTERO_ASSIGN_OR_RETURN(const HeadRows rows, head_rows(k, "keys"));
  PTERO_ASSIGN_OR_RETURN(const HeadRows cache, head_rows(k_cache, "key cache"));
  PTERO_ASSIGN_OR_RETURN(const MoveTypes types, move_types(k, k_cache, 4));
  const auto n = static_cast<uint32_t>(k.numel() / 4);
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, n));
  return op.dispatch({{&wgsl::kCacheAppend, types.prelude, {}, types.features},
                      {k, v, op.slots(), k_cache, v_cache},
                      grid},
                     wgsl::CacheAppendParams{.n = n,
                                             .width = rows.heads * rows.dim / 4,
                                             .rows = rows.rows,
                                             .capacity = cache.rows,
                                             .slot = position.index});
}

// value, cache, start_pos[, indices]; what it produces means nothing. With indices, the rows go
// where these say, and start_pos does not matter.
Status plan_update_cache(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef value, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef cache, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(TensorRef result, op.output());
  PTERO_ASSIGN_OR_RETURN(const HeadRows rows, head_rows(value, "value"));
  PTERO_ASSIGN_OR_RETURN(const HeadRows cache_rows, head_rows(cache, "cache"));
  PTERO_RETURN_IF_ERROR(require_fits_cache(value, rows, cache, cache_rows));
  if (result.id != cache.id) {
    PTERO_RETURN_IF_ERROR(op.set_shape(result, op.bound(result)));
  }
  std::optional<TensorRef> indices;
  if (op.arg_count() > 4) {
    PTERO_ASSIGN_OR_RETURN(indices, op.optional_tensor(3));
  }
  if (indices) {
    PTERO_REJECT_IF(indices->dtype != pte::GraphDtype::int32, unsupported,
                    "Element type ({}) of indices in tensor {} is not int32.",
                    pte::name_of(indices->dtype), indices->id);
    PTERO_REJECT_IF(indices->numel() != rows.rows, invalid_program,
                    "Number of indices ({}) differs from that of rows ({}).", indices->numel(),
                    rows.rows);
  }
  graph::Slot position;
  if (!indices) {
    PTERO_ASSIGN_OR_RETURN(position, op.slot(2, 0, int64_t{cache_rows.rows} - int64_t{rows.rows}));
  }
  const auto n = static_cast<uint32_t>(value.numel());
  if (n == 0) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const MoveTypes types, move_types(value, cache, 1));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, n));
  return op.dispatch(
      {{&wgsl::kCacheUpdate, types.prelude, {{"indexed", indices ? 1.0 : 0.0}}, types.features},
       {value, indices ? graph::BufferRef(value) : op.slots(), indices.value_or(value), cache},
       grid},
      wgsl::CacheUpdateParams{.n = n,
                              .width = rows.heads * rows.dim,
                              .rows = rows.rows,
                              .capacity = cache_rows.rows,
                              .slot = position.index});
}

}  // namespace ptero::ops
