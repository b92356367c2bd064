// SPDX-License-Identifier: BSD-3-Clause
// 4-bit linear layers against sums in double, for every kernel that planning may choose.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/quant_linear/q4_named_test.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using namespace q4_testing;

// Whether an element is within 1e-4 or a thousandth, ten times as much for sums of 8192; where
// products are made in f16, within 2.3e-4 of the sum of their sizes, or what rounding each costs at
// most where there are few (x and w are exact in f16 here).
bool is_close(const Layer& layer, uint32_t row, uint32_t column, double value, bool half) {
  const double want = layer.want(row, column);
  const double error = std::abs(value - want);
  if (half) {
    const double each = layer.k < 64 ? 0x1p-11 : 2.3e-4;
    const double stored = layer.half ? 0x1p-11 : 1e-6;
    return error <= each * layer.sum_of_sizes(row, column) + stored * std::abs(want);
  }
  const double slack = layer.k >= 8192 ? 10 : 1;
  return error <= 1e-4 * slack || error <= 1e-3 * slack * std::abs(want);
}

// At most `columns` of y are looked at, the last among them.
void check_layer(PlannedRun& run, const Way& way, Layer layer, uint32_t columns = ~0u) {
  layer.fill();
  const std::vector<double> got = run_layer(run, layer);
  const bool half = multiplies_in_half(way, run.kernels());
  REQUIRE(got.size() == uint64_t{layer.m} * layer.n);
  std::string first;
  size_t wrong = 0;
  const uint32_t step = std::max(layer.n / columns, 1u);
  for (uint32_t row = 0; row < layer.m; ++row) {
    for (uint32_t i = 0; i < layer.n; i += step) {
      const uint32_t column = layer.n - 1 - i;
      const double value = got[uint64_t{row} * layer.n + column];
      if (!is_close(layer, row, column, value, half) && wrong++ == 0) {
        first =
            fmt::format("y[{}, {}] is {} and not {}", row, column, value, layer.want(row, column));
      }
    }
  }
  INFO(fmt::format("{} x {} x {} in groups of {}", layer.m, layer.n, layer.k, layer.group));
  CHECK_MESSAGE(wrong == 0, first);
}

TEST_CASE("q4gsw: every number of rows") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const uint32_t m : {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 65, 130}) {
      PlannedRun run(shared_device(), way.change);
      check_layer(run, way, {.m = m, .n = 99, .k = 160, .bias = m % 2 == 1});
    }
  }
}

TEST_CASE("q4gsw: groups of every size") {
  struct Size {
    uint32_t k;
    uint32_t group;
  };
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const Size size : {Size{256, 32},
                            {256, 64},
                            {256, 128},
                            {256, 256},
                            {256, 8},
                            {240, 16},
                            {240, 48},
                            {200, 8},
                            {200, 200},
                            {100, 40},
                            {20, 4},
                            {20, 20},
                            {4, 4},
                            {36, 12},
                            {90, 7},
                            {8, 8},
                            {576, 96},
                            {576, 512}}) {
      for (const uint32_t m : {1, 6, 20}) {
        PlannedRun run(shared_device(), way.change);
        check_layer(run, way, {.m = m, .n = 37, .k = size.k, .group = size.group, .bias = m == 6});
      }
    }
  }
}

TEST_CASE("q4gsw: the shapes of Llama") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const uint32_t k : {2048, 8192}) {
      for (const uint32_t n : {512, 2048, 8192}) {
        PlannedRun run(shared_device(), way.change);
        check_layer(run, way, {.m = 1, .n = n, .k = k, .group = n == 512 ? 64u : 32u}, 60);
      }
      PlannedRun run(shared_device(), way.change);
      check_layer(run, way, {.m = 19, .n = 512, .k = k, .group = 128}, 60);
    }
  }
}

TEST_CASE("q4gsw: a vocabulary of 128256") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    PlannedRun run(shared_device(), way.change);
    check_layer(run, way, {.m = 1, .n = 128256, .k = on_lavapipe() ? 2048u : 256u}, 200);
  }
}

TEST_CASE("q4gsw: float16") {
  if (!has_half()) {
    REQUIRE(on_swiftshader());
    return;
  }
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const uint32_t m : {1, 3, 40}) {
      PlannedRun run(shared_device(), way.change);
      check_layer(run, way, {.m = m, .n = 71, .k = 320, .bias = m == 3, .half = true});
      PlannedRun odd(shared_device(), way.change);
      check_layer(odd, way, {.m = m, .n = 71, .k = 36, .group = 12, .bias = m == 3, .half = true});
    }
  }
}

TEST_CASE("q4gsw: rows of x with a single one give the dequantised weight exactly") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const uint32_t k : {64, 60}) {
      for (const uint32_t m : {k, 1u}) {
        Layer layer{.m = m, .n = 48, .k = k, .group = k == 64 ? 32u : 12u};
        layer.fill();
        for (uint32_t i = 0; i < m * k; ++i) {
          layer.x[i] = i / k == i % k ? 1 : 0;
        }
        PlannedRun run(shared_device(), way.change);
        const std::vector<double> got = run_layer(run, layer);
        size_t wrong = 0;
        for (uint32_t i = 0; i < m * layer.n; ++i) {
          wrong += got[i] == layer.dequantized(i % layer.n, i / layer.n) ? 0 : 1;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("q4gsw: weights and scales beyond the largest binding") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    const Change change = [&](graph::DeviceFacts& facts) {
      way.change(facts);
      // Blocks of 129 rows of 256 bytes, so that no block of scales starts where a binding may.
      facts.limits.max_storage_binding_size = 129 * 256;
      facts.limits.min_storage_offset_alignment = 256;
    };
    for (const uint32_t m : {1, 5, 40}) {
      // Weights of 200 KB and scales of 50 KB: blocks of N.
      PlannedRun rows(shared_device(), change);
      check_layer(rows, way, {.m = m, .n = 799, .k = 512, .bias = true});
      CHECK(rows.kernels().size() >= 7);
      // 128 bytes of weights and as many of scales a row: K is taken apart, too.
      PlannedRun both(shared_device(), change);
      check_layer(both, way, {.m = m, .n = 1499, .k = 256, .group = 8, .bias = true});
      CHECK(both.kernels().size() >= 30);
      // The same where rows are not whole words.
      PlannedRun odd(shared_device(), change);
      check_layer(odd, way, {.m = m, .n = 501, .k = 250, .group = 10, .bias = true});
      CHECK(odd.kernels().front() == "q4_any");
      CHECK(odd.kernels().size() >= 4);
    }
  }
}

TEST_CASE("qcs4w: the other order of nibbles, one scale a row, rows that end anywhere") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const uint32_t k : {64, 576, 20, 13, 70}) {
      for (const uint32_t m : {1, 4, 21}) {
        PlannedRun run(shared_device(), way.change);
        check_layer(run, way, {.m = m, .n = 33, .k = k, .swapped = true, .row_bytes = (k + 1) / 2});
      }
    }
  }
}

TEST_CASE("q4gsw: each device takes its kernel") {
  const auto kernels = [&](size_t way, uint32_t m) {
    PlannedRun run(shared_device(), ways()[way].change);
    check_layer(run, ways()[way], {.m = m, .n = 64, .k = 64});
    return run.kernels();
  };
  using Names = std::vector<std::string>;
  CHECK(kernels(0, 1) == Names{"q4_column"});
  CHECK(kernels(0, 20) == Names{"q4_column_rows"});
  const bool subgroups = shared_device().features().contains(gpu::Feature::subgroups);
  CHECK(kernels(1, 1) == Names{subgroups ? "q4_gemv_subgroup" : "q4_gemv"});
  CHECK(kernels(1, 20) == Names{"q4_steel"});
  CHECK(kernels(2, 20) == Names{"q4_steel"});
  CHECK(kernels(3, 1) == Names{"q4_gemv"});
  CHECK(kernels(3, 20) == Names{"q4_tile"});
  CHECK(kernels(4, 1) == kernels(1, 1));
  CHECK(kernels(4, 20) == Names{half_kernel()});
}

}  // namespace
}  // namespace ptero::ops
