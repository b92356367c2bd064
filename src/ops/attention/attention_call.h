// SPDX-License-Identifier: BSD-3-Clause
// Inside the family: attention without the differences between its operators.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

enum class AttentionRoute : uint8_t {
  automatic,     // by device and shape
  rows,          // one thread a query
  split,         // few queries: the keys are split over workgroups
  tiles,         // tiles of queries and keys pass through workgroup memory
  matrix,        // the same by matrix units, in f16 with sums in f32
  materialized,  // all scores in scratch memory, as many as queries times keys
};

// y = softmax(q k' * scale + mask) v. Strides are in elements, as attention_part.wgsl explains
// them.
struct Attention {
  graph::TensorRef q;
  graph::TensorRef k;
  graph::TensorRef v;
  graph::TensorRef y;  // laid out as q
  std::optional<graph::TensorRef> mask;
  std::optional<graph::Slot> position;  // of row 0 among the keys; causal attention has one
  bool causal = false;
  double scale = 1;
  uint32_t rows = 0;
  uint32_t heads = 0;  // of k and v, batches included
  uint32_t group = 1;
  uint32_t keys = 0;
  uint32_t dim = 0;  // of a head, a multiple of 4
  uint32_t q_row = 0;
  uint32_t q_head = 0;
  uint32_t kv_row = 0;
  uint32_t kv_head = 0;
  uint32_t mask_row = 0;
  uint32_t mask_head = 0;

  uint64_t queries() const { return uint64_t{rows} * heads * group; }
};

// Checks what all operators have in common, and records the dispatches: those of the route that
// the option sdpa_route names, where it serves.
Status dispatch_attention(graph::OpCall& op, const Attention& attention);

// Rows of k and v [rows, heads, dim] into their caches.
Status append_to_caches(graph::OpCall& op, const graph::TensorRef& k, const graph::TensorRef& v,
                        const graph::TensorRef& k_cache, const graph::TensorRef& v_cache,
                        const graph::Slot& position);
Status plan_update_cache(graph::OpCall& op);

// [rows, heads, dim], with or without a batch of 1 before.
struct HeadRows {
  uint32_t rows = 0;
  uint32_t heads = 0;
  uint32_t dim = 0;

  bool operator==(const HeadRows&) const = default;
};
Result<HeadRows> head_rows(const graph::TensorRef& tensor, std::string_view what);

// The cache takes rows with these heads, as many as there are; both are float tensors.
Status require_fits_cache(const graph::TensorRef& value, const HeadRows& rows,
                          const graph::TensorRef& cache, const HeadRows& cache_rows);

}  // namespace ptero::ops
