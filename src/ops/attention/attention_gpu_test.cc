// SPDX-License-Identifier: BSD-3-Clause
// sdpa_with_kv_cache on a device, by every route: replays of prefill and decoding.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "ops/attention/attention_test_model.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;

struct Replay {
  CacheModel model;
  std::vector<uint32_t> steps;
};
const std::vector<Replay>& replays() {
  static const std::vector<Replay> made = {
      {{8, 4, 4, 16}, {3, 1, 1, 5, 1, 1, 2}},
      {{6, 2, 8, 16}, {3, 1, 1, 5, 1, 1}},
      {{24, 8, 128, 256}, {111, 1, 1, 1, 57, 1, 1}},
      {{16, 8, 128, 64}, {17, 1}},
      {{3, 1, 20, 300}, {70, 2, 200, 1, 5, 1}},  // an odd head, several tiles
      {{2, 2, 256, 70}, {64, 1, 1, 4}},          // the largest head of a split
  };
  return made;
}

void replay(const CacheModel& model, const std::vector<uint32_t>& steps, AttentionRoute route,
            double abs = 1e-4, double rel = 1e-3) {
  CacheSession session(model, route);
  uint32_t position = 0;
  for (const uint32_t rows : steps) {
    CAPTURE(position);
    CAPTURE(rows);
    const auto step = session.step(position, rows);
    CHECK(elements_off(step.got, step.want, abs, rel) == 0);
    position += rows;
  }
}

TEST_CASE("sdpa_with_kv_cache: replays of prefill, several tokens and single ones") {
  for (const AttentionRoute route : kAttentionRoutes) {
    for (const Replay& each : replays()) {
      CAPTURE(route_name(route));
      CAPTURE(each.model.q_heads);
      CAPTURE(each.model.dim);
      replay(each.model, each.steps, route);
    }
  }
}

TEST_CASE("sdpa_with_kv_cache: caches of 4,096 and 8,192 positions, filled to the last") {
  const auto fill = [](AttentionRoute route, uint32_t capacity) {
    CAPTURE(route_name(route));
    CAPTURE(capacity);
    std::vector<uint32_t> steps(capacity / 512 - 1, 512);
    steps.insert(steps.end(), {500, 11, 1});
    replay({1, 1, 4, capacity}, steps, route);
  };
  for (const AttentionRoute route : kAttentionRoutes) {
    fill(route, 4096);
  }
  fill(AttentionRoute::rows, 8192);  // quadratic: one is enough on a CPU
}

TEST_CASE("sdpa_with_kv_cache: two contexts in turns are two contexts") {
  const CacheModel model = {6, 2, 8, 16};
  CacheSession a(model, {}, graph::PlanOptions(), 1);
  CacheSession b(model, {}, graph::PlanOptions(), 2);
  CacheSession alone(model, {}, graph::PlanOptions(), 1);
  uint32_t position = 0;
  for (const uint32_t rows : {3u, 1u, 5u, 1u}) {
    const auto first = a.step(position, rows);
    const auto other = b.step(position, rows);
    const auto want = alone.step(position, rows);
    CHECK(first.got == want.got);
    CHECK(elements_off(other.got, other.want, 1e-4, 1e-3) == 0);
    position += rows;
  }
}

TEST_CASE("sdpa_with_kv_cache: tiles of 16 queries") {
  graph::PlanOptions options = with_route(AttentionRoute::tiles);
  options.sdpa_query_tile = 16;
  for (const Replay& each : replays()) {
    CAPTURE(each.model.dim);
    CacheSession session(each.model, {}, options);
    uint32_t position = 0;
    for (const uint32_t rows : each.steps) {
      CAPTURE(position);
      const auto step = session.step(position, rows);
      CHECK(elements_off(step.got, step.want) == 0);
      position += rows;
    }
  }
}

TEST_CASE("sdpa_with_kv_cache: the route that the device gets") {
  for (const Replay& each : replays()) {
    CAPTURE(each.model.dim);
    replay(each.model, each.steps, AttentionRoute::automatic);
  }
}

TEST_CASE("sdpa_with_kv_cache: large scores, given scales, heads that no split takes") {
  for (const AttentionRoute route : kAttentionRoutes) {
    CAPTURE(route_name(route));
    replay({.q_heads = 4, .kv_heads = 2, .dim = 16, .capacity = 96, .q_range = 1000}, {70, 1, 2},
           route);
    // Scores whose squares, and sums of exponentials without a maximum, exceed float32.
    replay({.q_heads = 4, .kv_heads = 2, .dim = 16, .capacity = 96, .scale = 1e18, .q_range = 1000},
           {70, 1, 2}, route, 1e-3);
    replay({.q_heads = 4, .kv_heads = 2, .dim = 16, .capacity = 16, .scale = 0.7}, {9, 1}, route);
    replay({.q_heads = 2, .kv_heads = 1, .dim = 260, .capacity = 40}, {35, 1}, route);
  }
}

TEST_CASE("sdpa_with_kv_cache: caches of float16") {
  if (!attention_device().features().contains(gpu::Feature::shader_f16)) {
    return;  // no kernel can touch float16 there
  }
  for (const AttentionRoute route : kAttentionRoutes) {
    CAPTURE(route_name(route));
    replay({.q_heads = 6,
            .kv_heads = 2,
            .dim = 32,
            .capacity = 96,
            .cache_dtype = GraphDtype::float16},
           {40, 1, 3, 33, 1}, route);
    replay({.q_heads = 6,
            .kv_heads = 2,
            .dim = 32,
            .capacity = 96,
            .dtype = GraphDtype::float16,
            .cache_dtype = GraphDtype::float16},
           {40, 1, 3, 33, 1}, route, 2e-3, 1e-2);
  }
}

TEST_CASE("sdpa_with_kv_cache: one prefill, token by token and mixed chunks agree") {
  const CacheModel model{.q_heads = 6, .kv_heads = 3, .dim = 16, .capacity = 40};
  std::mt19937 random(7);
  CacheSession::Step all;
  all.q = random_floats(random, 40 * 6 * 16);
  all.k = random_floats(random, 40 * 3 * 16);
  all.v = random_floats(random, 40 * 3 * 16);
  const std::vector<std::vector<uint32_t>> chunkings = {
      {40}, std::vector<uint32_t>(40, 1), {17, 1, 1, 9, 2, 10}};
  for (const AttentionRoute route : kAttentionRoutes) {
    CAPTURE(route_name(route));
    std::vector<Floats> results;
    for (const auto& chunks : chunkings) {
      CacheSession session(model, route);
      Floats result;
      uint32_t position = 0;
      for (const uint32_t rows : chunks) {
        const auto part = [&](const Floats& of, size_t width) {
          return Floats(of.begin() + static_cast<std::ptrdiff_t>(position * width),
                        of.begin() + static_cast<std::ptrdiff_t>((position + rows) * width));
        };
        CacheSession::Step step{part(all.q, 96), part(all.k, 48), part(all.v, 48), {}, {}};
        session.run(position, rows, step);
        CHECK(elements_off(step.got, step.want) == 0);
        result.insert(result.end(), step.got.begin(), step.got.end());
        position += rows;
      }
      results.push_back(std::move(result));
    }
    for (const Floats& result : results) {
      CHECK(elements_off(result, Doubles(results[0].begin(), results[0].end()), 1e-5, 1e-5) == 0);
    }
  }
}

TEST_CASE("sdpa_with_kv_cache: a second conversation overwrites the first, position by position") {
  for (const AttentionRoute route : kAttentionRoutes) {
    CAPTURE(route_name(route));
    CacheSession session({.q_heads = 4, .kv_heads = 2, .dim = 8, .capacity = 16}, route);
    for (const auto& [position, rows] :
         std::vector<std::pair<uint32_t, uint32_t>>{{0, 16}, {0, 3}, {3, 1}, {4, 5}, {2, 1}}) {
      const auto step = session.step(position, rows);
      CHECK(elements_off(step.got, step.want) == 0);
    }
  }
}

TEST_CASE("sdpa_with_kv_cache: control: with the position pinned, later steps are wrong") {
  for (const AttentionRoute route : kAttentionRoutes) {
    CAPTURE(route_name(route));
    CacheSession session({.q_heads = 4, .kv_heads = 2, .dim = 8, .capacity = 16, .pinned = 0},
                         route);
    CHECK(elements_off(session.step(0, 3).got, session.step(0, 3).want) > 0);  // other numbers
    const auto first = session.step(0, 3);
    CHECK(elements_off(first.got, first.want) == 0);
    const auto later = session.step(3, 1);
    CHECK(elements_off(later.got, later.want) > later.got.size() / 2);
  }
}

TEST_CASE("sdpa_with_kv_cache: a position beyond the cache is refused and changes nothing") {
  CacheSession session({.q_heads = 4, .kv_heads = 2, .dim = 8, .capacity = 16},
                       AttentionRoute::automatic);
  auto step = session.step(0, 15);
  CHECK(elements_off(step.got, step.want) == 0);
  CacheSession::Step none{
      Floats(2 * 4 * 8, 9.0f), Floats(2 * 2 * 8, 9.0f), Floats(2 * 2 * 8, 9.0f), {}, {}};
  gpu::testing::expect_error(session.start(15, 2, none), ErrorCode::invalid_argument,
                             {"15", "sdpa_with_kv_cache"});
  step = session.step(15, 1);  // sees the rows before as they were
  CHECK(elements_off(step.got, step.want) == 0);
}

}  // namespace
}  // namespace ptero::ops
