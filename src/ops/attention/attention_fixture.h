// SPDX-License-Identifier: BSD-3-Clause
// For tests of planning: a call of sdpa_with_kv_cache.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/common/one_op_fixture.h"

namespace ptero::ops {

inline double override_of(const graph::PlannedDispatch& dispatch, std::string_view name) {
  return *gpu::override_value(dispatch.kernel, name);
}

// The position is a SymInt input.
struct SdpaFixture : OneOpFixture {
  SdpaFixture(uint32_t rows, uint32_t q_heads, uint32_t kv_heads, uint32_t dim, uint32_t capacity,
              pte::GraphDtype dtype = pte::GraphDtype::float32,
              pte::GraphDtype cache_dtype = pte::GraphDtype::float32) {
    q = input({1, rows, q_heads, dim}, dtype);
    k = input({1, rows, kv_heads, dim}, dtype);
    v = input({1, rows, kv_heads, dim}, dtype);
    k_cache = tensor({1, capacity, kv_heads, dim}, cache_dtype);
    v_cache = tensor({1, capacity, kv_heads, dim}, cache_dtype);
    position = value(pte::SymInt{});
    graph.inputs.push_back(position);
    seq_len = value(int64_t{1});
    mask = null();
    dropout = value(int64_t{0});
    causal = value(true);
    scale = null();
    y = output({1, rows, q_heads, dim}, dtype);
  }
  std::vector<uint32_t> args() const {
    return {q, k, v, k_cache, v_cache, position, seq_len, mask, dropout, causal, scale, y};
  }
  auto plan_it(std::vector<graph::Shape> live = {}) {
    return plan("sdpa_with_kv_cache.default", args(), std::move(live));
  }
  Error error() { return plan_error("sdpa_with_kv_cache.default", args()); }

  uint32_t q, k, v, k_cache, v_cache, position, seq_len, mask, dropout, causal, scale, y;
};

}  // namespace ptero::ops
