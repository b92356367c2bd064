// SPDX-License-Identifier: BSD-3-Clause
// 4-bit linear layers of rows that are quantised to int8, against sums in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/quant_linear/q4_test_layer.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using namespace q4_testing;

// Scales are powers of two, so that no quotient is next to a half by accident.
struct Rows {
  std::vector<double> scales;
  std::vector<int8_t> zeros;
};

// What the row's bytes mean, in double.
double quantized(double value, double scale, int zero) {
  return (std::clamp(std::nearbyint(value / scale) + zero, -128.0, 127.0) - zero) * scale;
}

void check_layer(PlannedRun& run, Layer layer) {
  layer.fill();
  Random random(layer.m + layer.k);
  Rows rows;
  for (uint32_t m = 0; m < layer.m; ++m) {
    rows.scales.push_back(std::ldexp(1.0, -7 + static_cast<int>(random.below(3))));
    rows.zeros.push_back(static_cast<int8_t>(random.below(256)));
  }
  const uint32_t padded = (layer.n + 7) / 8 * 8;
  std::vector<int32_t> sums(layer.groups * padded);
  for (uint32_t n = 0; n < layer.n; ++n) {
    for (uint32_t k = 0; k < layer.k; ++k) {
      const uint8_t byte = layer.weight[uint64_t{n} * layer.row_bytes + k / 2];
      sums[k / layer.group * padded + n] += (k % 2 == 0 ? byte & 15 : byte >> 4) - 8;
    }
  }
  const GraphDtype type = layer.half ? GraphDtype::float16 : GraphDtype::float32;
  const uint32_t x = add_floats(run, {1, layer.m, layer.k}, layer.x, layer.half);
  const uint32_t x_scales = add_floats(run, {1, layer.m}, rows.scales, layer.half);
  const uint32_t x_zeros = run.input({1, layer.m}, GraphDtype::int8, rows.zeros);
  const uint32_t weight = run.input({layer.n, layer.row_bytes}, GraphDtype::uint8, layer.weight);
  const uint32_t weight_sums = run.input({layer.groups, padded}, GraphDtype::int32, sums);
  const uint32_t scales =
      add_floats(run, {layer.groups, layer.scale_row}, layer.scales, layer.half);
  const uint32_t group = run.value(int64_t{layer.group});
  const uint32_t bias =
      layer.bias ? add_floats(run, {layer.scale_row}, layer.addend, layer.half) : run.null();
  const uint32_t y = run.output({1, layer.m, layer.n}, type);
  const auto bytes = run.run("et_vk.linear_dq8ca_q4gsw.default",
                             {x, x_scales, x_zeros, weight, weight_sums, scales, group, bias, y})
                         .front();
  std::vector<double> got;
  if (layer.half) {
    const auto bits = values_of<uint16_t>(bytes);
    got.resize(bits.size());
    std::transform(bits.begin(), bits.end(), got.begin(), float_of_half);
  } else {
    const auto floats = values_of<float>(bytes);
    got.assign(floats.begin(), floats.end());
  }
  for (uint32_t i = 0; i < layer.m * layer.k; ++i) {
    const uint32_t row = i / layer.k;
    layer.x[i] = quantized(layer.x[i], rows.scales[row], rows.zeros[row]);
  }
  REQUIRE(got.size() == layer.m * layer.n);
  std::string first;
  size_t wrong = 0;
  for (uint32_t i = 0; i < got.size(); ++i) {
    const double want = layer.want(i / layer.n, i % layer.n);
    const double error = std::abs(got[i] - want);
    if (!(error <= 1e-4 || error <= 1e-3 * std::abs(want))) {
      if (wrong++ == 0) {
        first = fmt::format("y[{}] is {} and not {}", i, got[i], want);
      }
    }
  }
  INFO(fmt::format("{} x {} x {} in groups of {}", layer.m, layer.n, layer.k, layer.group));
  CHECK_MESSAGE(wrong == 0, first);
}

void check_layer(PlannedRun&& run, Layer layer) {
  check_layer(run, std::move(layer));
}

TEST_CASE("dq8ca_q4gsw: numbers of rows, groups, with packed dot products and without") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const bool packed : {true, false}) {
      CAPTURE(packed);
      const auto change = [&](graph::DeviceFacts& facts) {
        way.change(facts);
        if (!packed) {
          facts.features.erase(gpu::Feature::packed_dot);
        }
      };
      for (const uint32_t m : {1, 2, 3, 5, 8, 17, 40, 130}) {
        check_layer(PlannedRun(shared_device(), change),
                    {.m = m, .n = 75, .k = 192, .bias = m % 2 == 1});
      }
      for (const uint32_t group : {8, 16, 64, 192}) {
        for (const uint32_t m : {1, 20}) {
          check_layer(PlannedRun(shared_device(), change),
                      {.m = m, .n = 37, .k = 192, .group = group, .bias = m == 1});
        }
      }
      check_layer(PlannedRun(shared_device(), change), {.m = 3, .n = 9, .k = 20, .group = 4});
      check_layer(PlannedRun(shared_device(), change), {.m = 18, .n = 9, .k = 36, .group = 12});
      check_layer(PlannedRun(shared_device(), change), {.m = 1, .n = 66, .k = 2048});
    }
  }
}

TEST_CASE("dq8ca_q4gsw: a GPU with packed dot products uses them for many rows") {
  REQUIRE(shared_device().features().contains(gpu::Feature::packed_dot));
  PlannedRun run(shared_device(), ways()[1].change);
  check_layer(run, {.m = 70, .n = 70, .k = 96});
  CHECK(run.kernels() == std::vector<std::string>{"quantize_rows", "dot_tile"});
}

TEST_CASE("dq8ca_q4gsw: float16") {
  if (!shared_device().features().contains(gpu::Feature::shader_f16)) {
    REQUIRE(on_swiftshader());
    return;
  }
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const uint32_t m : {1, 3, 40}) {
      check_layer(PlannedRun(shared_device(), way.change),
                  {.m = m, .n = 71, .k = 320, .bias = m == 3, .half = true});
    }
  }
}

TEST_CASE("dq8ca_q4gsw: weights, scales and rows beyond the largest binding") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    const Change change = [&](graph::DeviceFacts& facts) {
      way.change(facts);
      // Blocks of 129 rows of 256 bytes, so that no block of scales starts where a binding may.
      facts.limits.max_storage_binding_size = 129 * 256;
      facts.limits.min_storage_offset_alignment = 256;
    };
    for (const uint32_t m : {1, 12, 35}) {
      check_layer(PlannedRun(shared_device(), change),
                  {.m = m, .n = 640, .k = 512, .group = 16, .bias = true});
    }
  }
}

}  // namespace
}  // namespace ptero::ops
