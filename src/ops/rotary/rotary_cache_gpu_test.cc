// SPDX-License-Identifier: BSD-3-Clause
// ptero.rotary_kv_cache on a device, against double: both layouts of pairs, live rows, positions,
// and what the caches hold afterwards.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/half.h"
#include "gpu/testing/test_device.h"
#include "graph/model.h"
#include "graph/session.h"
#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using graph::testing::Dims;
using graph::testing::GraphBuilder;

constexpr uint32_t kHeads = 3;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kDim = 12;
constexpr uint32_t kMaxRows = 5;
constexpr uint32_t kCapacity = 16;
constexpr uint32_t kWidth = (kHeads + 2 * kKvHeads) * kDim;

gpu::Device& shared_device() {
  static gpu::Device device = open_device();
  return device;
}

using Doubles = std::vector<double>;

// The operator in a session, beside a model of it in double.
class Rotator {
 public:
  Rotator(bool halves, pte::GraphDtype cache) : halves_(halves), cache_type_(cache) {
    GraphBuilder builder;
    const uint32_t qkv = builder.input({1, kMaxRows, kWidth});
    const Dims table = {halves ? kCapacity : kMaxRows, halves ? kDim : kDim / 2};
    const uint32_t cosines = builder.input(table);
    const uint32_t sines = builder.input(table);
    const Dims cache_dims = {1, kCapacity, kKvHeads, kDim};
    const uint32_t keys = builder.constant("", cache_dims, cache);
    const uint32_t values = builder.constant("", cache_dims, cache);
    const uint32_t position = builder.add(pte::SymInt{});
    const uint32_t queries = builder.tensor({1, kMaxRows, kHeads, kDim});
    builder.outputs({queries});
    builder.call("ptero.rotary_kv_cache.default",
                 {qkv, cosines, sines, keys, values, position,
                  halves ? position : builder.add(pte::Null{}), builder.add(halves), queries});
    pte::Graph graph = builder.graph();
    graph.inputs.push_back(position);
    session_ = must(graph::GraphSession::create(
        must(graph::GraphModel::load(shared_device(), std::move(graph), all_operators())),
        {.poison_activations = true}));
    for (Doubles& each : want_cache_) {
      each.resize(kCapacity * kKvHeads * kDim);
    }
  }

  auto start(uint32_t rows, int64_t position, const std::vector<float>& qkv,
             const std::vector<float>& cosines, const std::vector<float>& sines) {
    const graph::Shape table{halves_ ? kCapacity : rows, halves_ ? kDim : kDim / 2};
    std::vector<graph::RunInput> inputs;
    inputs.push_back({{{1, rows, kWidth}, 0}, std::as_bytes(std::span(qkv))});
    inputs.push_back({{table, 0}, std::as_bytes(std::span(cosines))});
    inputs.push_back({{table, 0}, std::as_bytes(std::span(sines))});
    inputs.push_back({{{}, position}, {}});
    return session_->run(inputs);
  }

  void check(std::mt19937& random, uint32_t rows, int64_t position) {
    const std::vector<float> qkv = floats(random, rows * kWidth);
    const uint32_t row = halves_ ? kDim : kDim / 2;
    const uint32_t table_rows = halves_ ? kCapacity : rows;
    const std::vector<float> cosines = floats(random, table_rows * row);
    const std::vector<float> sines = floats(random, table_rows * row);
    const auto got = values_of<float>(must(start(rows, position, qkv, cosines, sines))[0].bytes);
    Doubles want;
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t at = (halves_ ? static_cast<uint32_t>(position) + r : r) * row;
      for (uint32_t head = 0; head < kHeads + 2 * kKvHeads; ++head) {
        Doubles x(kDim);
        for (uint32_t i = 0; i < kDim; ++i) {
          x[i] = qkv[r * kWidth + head * kDim + i];
        }
        if (head < kHeads + kKvHeads) {
          x = turned(x, &cosines[at], &sines[at]);
        }
        if (head < kHeads) {
          want.insert(want.end(), x.begin(), x.end());
          continue;
        }
        const bool is_key = head < kHeads + kKvHeads;
        const uint32_t kv_head = head - kHeads - (is_key ? 0 : kKvHeads);
        const uint64_t to = ((static_cast<uint64_t>(position) + r) * kKvHeads + kv_head) * kDim;
        std::copy(x.begin(), x.end(),
                  want_cache_[is_key ? 0 : 1].begin() + static_cast<ptrdiff_t>(to));
      }
    }
    check_near(got, want, 1e-6);
    for (size_t i = 0; i < 2; ++i) {
      check_near(cache(i), want_cache_[i], cache_type_ == pte::GraphDtype::float16 ? 1e-3 : 1e-6);
    }
  }

 private:
  static std::vector<float> floats(std::mt19937& random, size_t count) {
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<float> made(count);
    for (float& value : made) {
      value = values(random);
    }
    return made;
  }

  Doubles turned(const Doubles& x, const float* cosines, const float* sines) const {
    Doubles y(kDim);
    for (uint32_t i = 0; i < kDim / 2; ++i) {
      const uint32_t a = halves_ ? i : 2 * i;
      const uint32_t b = halves_ ? i + kDim / 2 : 2 * i + 1;
      const uint32_t second = halves_ ? b : i;
      y[a] = x[a] * cosines[i] - x[b] * sines[i];
      y[b] = x[b] * cosines[second] + x[a] * sines[second];
    }
    return y;
  }

  std::vector<float> cache(size_t i) {
    const gpu::Buffer& buffer = *session_->caches()[i];
    if (cache_type_ != pte::GraphDtype::float16) {
      return download<float>(shared_device(), buffer);
    }
    std::vector<float> values;
    for (const uint16_t bits : download<uint16_t>(shared_device(), buffer)) {
      values.push_back(half_to_float(bits));
    }
    return values;
  }

  bool halves_;
  pte::GraphDtype cache_type_;
  std::unique_ptr<graph::GraphSession> session_;
  Doubles want_cache_[2];
};

TEST_CASE("operator ptero.rotary_kv_cache.default") {
  const bool half = shared_device().features().contains(gpu::Feature::shader_f16);
  for (const bool halves : {false, true}) {
    for (const auto cache : {pte::GraphDtype::float32, pte::GraphDtype::float16}) {
      if (cache == pte::GraphDtype::float16 && !half) {
        REQUIRE(on_swiftshader());
        continue;
      }
      CAPTURE(halves);
      std::mt19937 random(7);
      Rotator rotator(halves, cache);
      rotator.check(random, 5, 0);
      rotator.check(random, 1, 5);
      rotator.check(random, 3, 6);
      rotator.check(random, 2, 14);
      rotator.check(random, 4, 2);  // back over what is there
    }
  }
}

TEST_CASE("rotary_kv_cache: positions beyond the cache are refused, and it goes on") {
  for (const bool halves : {false, true}) {
    std::mt19937 random(8);
    Rotator rotator(halves, pte::GraphDtype::float32);
    const std::vector<float> zeros(kCapacity * kWidth);
    const auto part = [&](size_t count) {
      return std::vector<float>(zeros.begin(), zeros.begin() + static_cast<ptrdiff_t>(count));
    };
    const uint32_t row = halves ? kDim : kDim / 2;
    const size_t table = (halves ? kCapacity : 2) * row;
    for (const int64_t position : {15, -1}) {
      expect_error(rotator.start(2, position, part(2 * kWidth), part(table), part(table)),
                   ErrorCode::invalid_argument, {"5"});
    }
    rotator.check(random, 2, 14);
  }
}

}  // namespace
}  // namespace ptero::ops
