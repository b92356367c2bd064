// SPDX-License-Identifier: BSD-3-Clause
// int8 linear layers against exact sums on the host, with packed dot products and without.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/common/planned_run.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using pte::GraphDtype;

gpu::Device& shared_device() {
  static gpu::Device device = open_device({.robustness = false});
  return device;
}

constexpr double kScale = 0.0625;
constexpr int64_t kZero = -7;

struct Layer {
  uint32_t m;
  uint32_t n;
  uint32_t k;
  bool bias = false;
  std::vector<int8_t> x;
  std::vector<int8_t> weight;
  std::vector<float> scales;
  std::vector<float> addend;

  Layer(uint32_t rows, uint32_t columns, uint32_t depth, bool with_bias)
      : m(rows), n(columns), k(depth), bias(with_bias) {
    uint32_t state = m * 7 + n * 5 + k;
    const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
    x.resize(m * k);
    std::generate(x.begin(), x.end(), [&] { return static_cast<int8_t>(next()); });
    weight.resize(n * k);
    std::generate(weight.begin(), weight.end(), [&] { return static_cast<int8_t>(next()); });
    scales.resize(n);
    std::generate(scales.begin(), scales.end(),
                  [&] { return static_cast<float>(1 + next() % 64) / 4096; });
    addend.resize(n);
    std::generate(addend.begin(), addend.end(),
                  [&] { return static_cast<float>(next() % 256) / 16 - 8; });
  }

  double want(uint32_t i) const {
    const uint32_t row = i / n;
    const uint32_t column = i % n;
    int64_t sum = 0;
    for (uint32_t j = 0; j < k; ++j) {
      sum += (x[row * k + j] - kZero) * weight[column * k + j];
    }
    return static_cast<double>(sum) * kScale * scales[column] + (bias ? addend[column] : 0);
  }
};

// Arguments up to the scales of the weight.
std::vector<uint32_t> common_args(PlannedRun& run, const Layer& layer) {
  const uint32_t x = run.input({1, layer.m, layer.k}, GraphDtype::int8, layer.x);
  const uint32_t scale = run.value(kScale);
  const uint32_t zero = run.value(kZero);
  const uint32_t weight = run.input({layer.n, layer.k}, GraphDtype::int8, layer.weight);
  const uint32_t sums =
      run.input({(layer.n + 3) / 4 * 4}, GraphDtype::int32,
                std::vector<int32_t>((layer.n + 3) / 4 * 4, 12345));  // ours are exact
  return {x, scale, zero, weight, sums, run.input({layer.n}, GraphDtype::float32, layer.scales)};
}

uint32_t bias_arg(PlannedRun& run, const Layer& layer) {
  return layer.bias ? run.input({layer.n}, GraphDtype::float32, layer.addend) : run.null();
}

void check_floats(PlannedRun&& run, const Layer& layer) {
  std::vector<uint32_t> args = common_args(run, layer);
  args.push_back(bias_arg(run, layer));
  args.push_back(run.output({1, layer.m, layer.n}, GraphDtype::float32));
  const auto got = values_of<float>(run.run("et_vk.linear_q8ta_q8csw.default", args).front());
  REQUIRE(got.size() == layer.m * layer.n);
  size_t wrong = 0;
  for (uint32_t i = 0; i < got.size(); ++i) {
    const double want = layer.want(i);
    wrong += std::abs(got[i] - want) <= 1e-4 + 1e-6 * std::abs(want) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

void check_bytes(PlannedRun&& run, const Layer& layer, const char* name,
                 const std::string& activation) {
  constexpr double kOutScale = 0.75;
  constexpr int64_t kOutZero = 5;
  std::vector<uint32_t> args = common_args(run, layer);
  args.push_back(run.value(kOutScale));
  args.push_back(run.value(kOutZero));
  args.push_back(bias_arg(run, layer));
  args.push_back(run.value(activation));
  args.push_back(run.output({1, layer.m, layer.n}, GraphDtype::int8));
  const auto got = values_of<int8_t>(run.run(name, args).front());
  REQUIRE(got.size() == layer.m * layer.n);
  const double low = activation == "relu" ? kOutZero : -128;
  size_t wrong = 0;
  size_t inside = 0;
  for (uint32_t i = 0; i < got.size(); ++i) {
    const double exact = layer.want(i) / kOutScale;
    const double want = std::clamp(std::nearbyint(exact) + kOutZero, low, 127.0);
    // Next to a half, float32 may round either way.
    const bool tie = std::abs(std::abs(exact - std::trunc(exact)) - 0.5) < 1e-3;
    wrong += std::abs(got[i] - want) <= (tie ? 1 : 0) ? 0 : 1;
    inside += got[i] > low && got[i] < 127 ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(inside > got.size() / 8);
}

TEST_CASE("q8 linear: floats and bytes, with and without packed dot products, in any alignment") {
  struct Size {
    uint32_t m;
    uint32_t n;
    uint32_t k;
  };
  for (const bool packed : {true, false}) {
    const auto change = [&](graph::DeviceFacts& facts) {
      if (!packed) {
        facts.features.erase(gpu::Feature::packed_dot);
      }
    };
    for (const Size size : {Size{1, 48, 64},
                            {7, 48, 64},
                            {3, 5, 13},
                            {5, 33, 30},
                            {2, 7, 1},
                            {65, 12, 100},
                            {1, 130, 257}}) {
      for (const bool bias : {false, true}) {
        const Layer layer(size.m, size.n, size.k, bias);
        check_floats(PlannedRun(shared_device(), change), layer);
        check_bytes(PlannedRun(shared_device(), change), layer, "et_vk.q8ta_linear.default",
                    "none");
        check_bytes(PlannedRun(shared_device(), change), layer, "et_vk.q8ta_linear_gemv.default",
                    "relu");
      }
    }
  }
}

TEST_CASE("q8 linear: weights beyond the largest binding") {
  const auto change = [&](graph::DeviceFacts& facts) {
    facts.limits.max_storage_binding_size = 4096;
  };
  const Layer layer(3, 301, 64, true);
  check_floats(PlannedRun(shared_device(), change), layer);
  check_bytes(PlannedRun(shared_device(), change), layer, "et_vk.q8ta_linear.default", "none");
}

}  // namespace
}  // namespace ptero::ops
