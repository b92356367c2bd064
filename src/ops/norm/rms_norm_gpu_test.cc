// SPDX-License-Identifier: BSD-3-Clause
// rms_norm in every variant, for every way to share a row, against float64; and its form in f32
// without wide loads against the kernel that was there before the variants, to the bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "base/half.h"
#include "ops/common/planned_run.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/rms_norm.wgsl.h"
#include "ops/norm/testing/rms_norm_scalar.wgsl.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using pte::GraphDtype;

gpu::Device& norm_device() {
  static gpu::Device device = open_device({.robustness = false});
  return device;
}

std::vector<float> normal_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

std::vector<double> expected(const std::vector<float>& x, const std::vector<float>& weight,
                             double eps) {
  const size_t width = weight.size();
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size() / width; ++row) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) {
      squares += double{x[row * width + i]} * double{x[row * width + i]};
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (size_t i = 0; i < width; ++i) {
      y[row * width + i] = double{x[row * width + i]} * scale * double{weight[i]};
    }
  }
  return y;
}

// Runs a kernel on bytes; what comes out as bytes.
template <typename Params>
std::vector<std::byte> run_kernel(const gpu::KernelKey& key, std::span<const std::byte> x,
                                  std::span<const std::byte> weight, const Params& params,
                                  gpu::Grid grid) {
  gpu::Device& device = norm_device();
  const gpu::Kernel kernel = must(device.prepare({key})).front();
  const auto buffer_of = [&](const char* label, std::span<const std::byte> bytes) {
    gpu::Buffer buffer = make_buffer(device, label, bytes.size());
    must(device.write(buffer, 0, bytes));
    return buffer;
  };
  const gpu::Buffer in = buffer_of("x", x);
  const gpu::Buffer factors = buffer_of("weight", weight);
  // Full of NaN, so that what is left out shows.
  const gpu::Buffer out = buffer_of("y", std::vector<std::byte>(x.size(), std::byte{0xff}));
  gpu::Step step;
  must(step.dispatch(kernel, bind(device, kernel, {{&in}, {&factors}, {&out}}), params, grid));
  must(device.submit(step));
  return must(device.read(out, 0, x.size())).front();
}

std::vector<RowSplit> splits_of(const graph::DeviceFacts& facts, uint32_t rows) {
  std::vector<RowSplit> splits;
  for (const uint32_t wg_size : {4, 8, 64, 128, 256}) {
    for (uint32_t lanes = 1; lanes <= wg_size; lanes *= 2) {
      if (wg_size <= facts.limits.max_invocations_per_workgroup) {
        splits.push_back({wg_size, lanes, {(rows * lanes + wg_size - 1) / wg_size, 1, 1}});
      }
    }
  }
  return splits;
}

TEST_CASE("rms_norm: the form in f32 gives the bits that it gave before there were variants") {
  const graph::DeviceFacts facts = graph::device_facts(norm_device());
  for (const auto& [rows, width] : {std::pair<uint32_t, uint32_t>{1, 576}, {9, 67}, {3, 2048}}) {
    const std::vector<float> x = normal_values(size_t{rows} * width, width);
    const std::vector<float> weight = normal_values(width, rows);
    for (const RowSplit& split : splits_of(facts, rows)) {
      CAPTURE(split.wg_size);
      CAPTURE(split.lanes);
      const auto before = run_kernel(
          {&wgsl::kRmsNormScalar, "alias T = f32;\n", split.overrides(), {}},
          std::as_bytes(std::span(x)), std::as_bytes(std::span(weight)),
          wgsl::RmsNormScalarParams{.rows = rows, .width = width, .eps = 1e-5f}, split.grid);
      const auto now =
          run_kernel(must(rms_norm_key(facts, {GraphDtype::float32, 1, false}, split)),
                     std::as_bytes(std::span(x)), std::as_bytes(std::span(weight)),
                     wgsl::RmsNormParams{.rows = rows, .width = width, .eps = 1e-5f}, split.grid);
      CHECK(before == now);
    }
  }
}

TEST_CASE("rms_norm: every variant of the device, for every way to share a row") {
  const graph::DeviceFacts facts = graph::device_facts(norm_device());
  size_t tried = 0;
  for (const Variant& variant : variants()) {
    CAPTURE(name_of(variant));
    if (!facts.features.contains_all(must(make_variant(variant)).features)) {
      continue;
    }
    ++tried;
    const bool half = variant.element == GraphDtype::float16;
    for (const auto& [rows, loads] : {std::pair<uint32_t, uint32_t>{1, 144}, {9, 17}, {70, 5}}) {
      const uint32_t width = loads * variant.width;
      std::vector<float> x = normal_values(size_t{rows} * width, width);
      std::vector<float> weight = normal_values(width, rows);
      std::vector<uint16_t> half_x;
      std::vector<uint16_t> half_weight;
      for (float& value : x) {
        half_x.push_back(half ? float_to_half(value) : uint16_t{0});
        value = half ? half_to_float(half_x.back()) : value;
      }
      for (float& value : weight) {
        half_weight.push_back(half ? float_to_half(value) : uint16_t{0});
        value = half ? half_to_float(half_weight.back()) : value;
      }
      const std::vector<double> want = expected(x, weight, 1e-5);
      for (const RowSplit& split : splits_of(facts, rows)) {
        CAPTURE(split.wg_size);
        CAPTURE(split.lanes);
        const auto bytes = run_kernel(
            must(rms_norm_key(facts, variant, split)),
            half ? std::as_bytes(std::span(half_x)) : std::as_bytes(std::span(x)),
            half ? std::as_bytes(std::span(half_weight)) : std::as_bytes(std::span(weight)),
            wgsl::RmsNormParams{.rows = rows, .width = loads, .eps = 1e-5f}, split.grid);
        std::vector<float> got;
        if (half) {
          for (const uint16_t value : values_of<uint16_t>(bytes)) {
            got.push_back(half_to_float(value));
          }
        } else {
          got = values_of<float>(bytes);
        }
        // Sums of up to 576 squares in f32; a result rounded to f16 once, which may be cut off.
        check_near(got, want, half ? 0x1p-10 : 4e-6);
      }
    }
  }
  CHECK(tried >= (on_lavapipe() ? variants().size() : 3));
}

TEST_CASE("rms_norm: as planned for software adapters and for GPUs, with and without subgroups") {
  for (const bool software : {false, true}) {
    for (const bool subgroups : {false, true}) {
      for (const auto& [rows, width] :
           {std::pair<uint32_t, uint32_t>{1, 576}, {1, 2049}, {3, 4096}, {17, 66}, {130, 64}}) {
        CAPTURE(software);
        CAPTURE(rows);
        CAPTURE(width);
        PlannedRun run(norm_device(), [&](graph::DeviceFacts& facts) {
          facts.is_software = software;
          if (!subgroups) {
            facts.features.erase(gpu::Feature::subgroups);
          }
        });
        const std::vector<float> x = normal_values(size_t{rows} * width, width);
        const std::vector<float> weight = normal_values(width, rows);
        const uint32_t in = run.input({rows, width}, GraphDtype::float32, x);
        const uint32_t factors = run.input({width}, GraphDtype::float32, weight);
        const uint32_t eps = run.value(1e-5);
        const uint32_t y = run.output({rows, width}, GraphDtype::float32);
        const auto got = run.run("et_vk.rms_norm.default", {in, factors, eps, y});
        check_near(values_of<float>(got[0]), expected(x, weight, 1e-5), 4e-6);
      }
    }
  }
}

}  // namespace
}  // namespace ptero::ops
