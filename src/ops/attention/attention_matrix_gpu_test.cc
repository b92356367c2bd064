// SPDX-License-Identifier: BSD-3-Clause
// The attention kernel that takes matrix units. On SwiftShader, which has no matrices, what stands
// in for it.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "ops/attention/attention_test_model.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;

// Rounding q, k, v and weights to f16 moves a score by up to 2^-10 of its products' sizes.
constexpr double kAbs = 2e-3;
constexpr double kRel = 1e-2;

TEST_CASE("attention by matrices: replays of prefill in pieces, every number of blocks") {
  struct Replay {
    CacheModel model;
    std::vector<uint32_t> steps;
  };
  const std::vector<Replay> replays = {
      {{4, 1, 64, 300}, {70, 1, 33, 64, 17, 115}},  // a group of four
      {{24, 8, 128, 256}, {111, 1, 57, 31, 2}},
      {{2, 2, 80, 70}, {31, 33}},     // an odd number of matrices of y
      {{2, 1, 16, 64}, {40, 24}},     // one matrix of 16
      {{32, 8, 64, 600}, {511, 80}},  // enough workgroups for the larger tile
      {{2, 1, 256, 50}, {40}},        // too large a head
  };
  for (const Replay& replay : replays) {
    CacheSession session(replay.model, AttentionRoute::matrix);
    uint32_t position = 0;
    for (const uint32_t rows : replay.steps) {
      CAPTURE(replay.model.dim);
      CAPTURE(position);
      const auto step = session.step(position, rows);
      CHECK(elements_off(step.got, step.want, kAbs, kRel) == 0);
      position += rows;
    }
  }
}

TEST_CASE("attention by matrices: halves in the caches and everywhere") {
  if (!attention_device().features().contains(gpu::Feature::shader_f16)) {
    return;  // no kernel can touch float16 there
  }
  for (const GraphDtype dtype : {GraphDtype::float32, GraphDtype::float16}) {
    CacheSession session({.q_heads = 6,
                          .kv_heads = 2,
                          .dim = 64,
                          .capacity = 160,
                          .dtype = dtype,
                          .cache_dtype = GraphDtype::float16},
                         AttentionRoute::matrix);
    for (const auto& [position, rows] : {std::pair(0u, 90u), {90u, 3u}, {93u, 67u}}) {
      const auto step = session.step(position, rows);
      CHECK(elements_off(step.got, step.want, kAbs, kRel) == 0);
    }
  }
}

// Numbers that f16 holds, so that nothing but weights is rounded: to 2^-11 each.
TEST_CASE("attention by matrices: the largest score grows and shrinks along the keys") {
  constexpr uint32_t kRows = 290;
  constexpr uint32_t kDim = 64;
  const auto replay = [&](const std::string& what, const std::function<float(uint32_t)>& q,
                          const std::function<float(uint32_t)>& k) {
    CAPTURE(what);
    const CacheModel model{.q_heads = 2, .kv_heads = 1, .dim = kDim, .capacity = kRows};
    CacheSession session(model, AttentionRoute::matrix);
    std::mt19937 random(5);
    std::uniform_int_distribution<int> sixteenths(-16, 16);
    CacheSession::Step step;
    for (uint32_t row = 0; row < kRows; ++row) {
      step.q.insert(step.q.end(), size_t{2} * kDim, q(row));
      step.k.insert(step.k.end(), kDim, k(row));
      for (uint32_t d = 0; d < kDim; ++d) {
        step.v.push_back(static_cast<float>(sixteenths(random)) / 16);
      }
    }
    session.run(0, kRows, step);
    CHECK(elements_off(step.got, step.want, 1e-3, 1e-3) == 0);
  };
  const auto ramp = [](uint32_t row) { return static_cast<float>(row) / 64; };
  replay("grows in every tile", [](uint32_t) { return 2.0f; }, ramp);
  replay("grows slowly", [](uint32_t) { return 0.25f; }, ramp);
  replay("shrinks", [](uint32_t) { return -2.0f; }, ramp);
  replay("grows for some", [](uint32_t row) { return row % 5 == 0 ? 2.0f : -0.5f; }, ramp);
  replay(
      "one key counts", [](uint32_t) { return 1.0f; },
      [](uint32_t row) { return row == 77 ? 8.0f : 0.0f; });
  replay(
      "beyond what a weight may be", [](uint32_t) { return 4.0f; },
      [](uint32_t row) { return row < 64 ? 0.0f : 16.0f; });
}

TEST_CASE("attention by matrices: another conversation after a longer one") {
  CacheSession session({.q_heads = 4, .kv_heads = 2, .dim = 64, .capacity = 200},
                       AttentionRoute::matrix);
  for (const auto& [position, rows] : {std::pair(0u, 200u), {0u, 37u}, {37u, 100u}}) {
    const auto step = session.step(position, rows);
    CHECK(elements_off(step.got, step.want, kAbs, kRel) == 0);
  }
}

}  // namespace
}  // namespace ptero::ops
