// SPDX-License-Identifier: BSD-3-Clause
// KV caches that a pass turns into float16: replays of prefill and decoding against attention in
// double over unrounded caches. On SwiftShader, which has no shader-f16, the caches stay float32.
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "ops/attention/attention_test_model.h"
#include "passes/passes.h"

namespace ptero {
namespace {

using ops::AttentionRoute;

struct Replay {
  ops::CacheModel model;
  std::vector<uint32_t> steps;
};

uint64_t cache_bytes(ops::CacheSession& session) {
  uint64_t bytes = 0;
  for (const gpu::Buffer* cache : session.session().caches()) {
    bytes += cache->size();
  }
  return bytes;
}

TEST_CASE("enable_f16_kv_cache: replays within 2e-3 or a hundredth, in half the memory") {
  const std::vector<Replay> replays = {
      {{8, 4, 4, 16}, {3, 1, 1, 5, 1, 1, 2}},
      {{6, 2, 8, 16}, {3, 1, 1, 5, 1, 1}},
      {{24, 8, 128, 256}, {111, 1, 1, 1, 57, 1, 1}},
      {{16, 8, 128, 64}, {17, 1}},
      {{32, 8, 64, 512}, {128, 1, 1}},
  };
  const bool half = ops::attention_device().features().contains(gpu::Feature::shader_f16);
  CHECK(half != gpu::testing::on_swiftshader());
  const auto& passes = passes::standard_passes();
  for (const AttentionRoute route :
       {AttentionRoute::automatic, AttentionRoute::rows, AttentionRoute::split,
        AttentionRoute::tiles, AttentionRoute::materialized}) {
    CAPTURE(ops::route_name(route));
    for (const Replay& replay : replays) {
      CAPTURE(replay.model.dim);
      graph::PlanOptions options = ops::with_route(route);
      ops::CacheSession plain(replay.model, passes, options);
      options.enable_f16_kv_cache = true;
      ops::CacheSession session(replay.model, passes, options);
      CHECK(cache_bytes(plain) == cache_bytes(session) * (half ? 2 : 1));
      uint32_t position = 0;
      size_t rounded = 0;
      for (const uint32_t rows : replay.steps) {
        const auto step = session.step(position, rows);
        CHECK(ops::elements_off(step.got, step.want, 2e-3, 1e-2) == 0);
        const auto exact = plain.step(position, rows);
        CHECK(ops::elements_off(exact.got, exact.want) == 0);
        rounded += step.got != exact.got ? 1 : 0;
        position += rows;
      }
      CHECK((rounded > 0) == half);
    }
  }
}

}  // namespace
}  // namespace ptero
