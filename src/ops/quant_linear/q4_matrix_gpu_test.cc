// SPDX-License-Identifier: BSD-3-Clause
// The kernel of 4-bit linear layers that takes matrix units, at the edges of its tiles, in both
// sizes that these have. On SwiftShader, which has no matrices, what stands in for it.
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/quant_linear/q4_named_test.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using namespace q4_testing;

// Whether the kernel multiplies in f16 here.
bool halves(uint32_t m) {
  return has_half() && m > 16;
}

std::vector<double> run_matrix(const Layer& layer) {
  PlannedRun run(shared_device(), named("matrix"));
  const std::vector<double> got = run_layer(run, layer);
  if (layer.m > 16) {
    CHECK(run.kernels() == std::vector<std::string>{half_kernel()});
  }
  REQUIRE(got.size() == uint64_t{layer.m} * layer.n);
  return got;
}

TEST_CASE("q4 matrices: ramps of sixteenths, every number of rows") {
  for (const uint32_t m : {1, 2, 16, 17, 70, 96, 127, 128, 130, 508, 512}) {
    for (const auto [n, k, group] : {std::array<uint32_t, 3>{136, 256, 8}, {65, 264, 24}}) {
      const Layer layer = ramp_layer(m, n, k, group);
      CAPTURE(m);
      CAPTURE(n);
      CHECK(elements_wrong(
                layer, run_matrix(layer),
                [](double got, double want, double /*sizes*/) {
                  const double error = std::abs(got - want);
                  return error <= 2.3e-4 || error <= 2.3e-4 * std::abs(want);
                },
                m > 130 ? 13 : 3) == 0);
    }
  }
}

TEST_CASE("q4 matrices: normal data, every group") {
  for (const uint32_t m : {1, 2, 16, 70, 96, 128, 130, 508, 512}) {
    for (const uint32_t group : {8, 16, 32, 64, 128, 256}) {
      const Layer layer = normal_layer(m, m == 96 ? 63 : 129, 512, group);
      CAPTURE(m);
      CAPTURE(group);
      CHECK(elements_wrong(
                layer, run_matrix(layer),
                [&](double got, double want, double sizes) {
                  return halves(m) ? std::abs(got - want) <= 2.3e-4 * sizes
                                   : close_in_f32(got, want, sizes);
                },
                m > 130 ? 31 : 7) == 0);
    }
  }
}

// There are three sizes; the largest is taken from 128 of them on, of 128 x 128 elements on NVIDIA,
// of 64 x 64 on lavapipe.
TEST_CASE("q4 matrices: larger tiles") {
  for (const auto [m, n, k, group] : {std::array<uint32_t, 4>{130, 8200, 40, 8},
                                      {508, 4097, 256, 64},
                                      {257, 5505, 96, 32},
                                      {508, 900, 136, 8},
                                      {128, 16385, 24, 24}}) {
    for (const bool bias : {false, true}) {
      Layer layer{.m = m, .n = n, .k = k, .group = group, .bias = bias};
      layer.fill();
      CAPTURE(m);
      CAPTURE(n);
      CHECK(elements_wrong(
                layer, run_matrix(layer),
                [](double got, double want, double sizes) {
                  return std::abs(got - want) <= 2.3e-4 * sizes + 1e-6 ||
                         close_in_f32(got, want, sizes);
                },
                k > 50 ? 61 : 17) == 0);
    }
  }
}

TEST_CASE("q4 matrices: x in f16") {
  if (!has_half()) {
    REQUIRE(on_swiftshader());
    return;
  }
  for (const auto [m, n, k, group] :
       {std::array<uint32_t, 4>{70, 131, 320, 64}, {130, 8193, 40, 8}}) {
    Layer layer{.m = m, .n = n, .k = k, .group = group, .bias = true, .half = true};
    layer.fill();
    CHECK(elements_wrong(
              layer, run_matrix(layer),
              [](double got, double want, double sizes) {
                // y is rounded, too
                return std::abs(got - want) <= 2.3e-4 * sizes + 0x1p-11 * std::abs(want);
              },
              7) == 0);
  }
}

// What rows of the weight hold behind x, and what lies behind the tensors, takes no part.
TEST_CASE("q4 matrices: rows of the weight longer than those of x") {
  for (const uint32_t m : {20, 130}) {
    Layer layer{.m = m, .n = 70, .k = 40, .group = 8, .row_bytes = 32};
    layer.fill();
    CHECK(elements_wrong(layer, run_matrix(layer), [](double got, double want, double sizes) {
            return std::abs(got - want) <= 2.3e-4 * sizes + 1e-6;
          }) == 0);
  }
}

TEST_CASE("q4 matrices: x beyond 65504 is infinite, as in every product in f16") {
  Layer layer{.m = 20, .n = 16, .k = 32};
  layer.fill();
  layer.x[5] = 70000;
  const std::vector<double> got = run_matrix(layer);
  for (uint32_t n = 0; n < layer.n; ++n) {
    CHECK(std::isfinite(got[layer.n + n]));
    CHECK(std::isfinite(got[n]) == !has_half());
  }
}

}  // namespace
}  // namespace ptero::ops
