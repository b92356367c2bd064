// SPDX-License-Identifier: BSD-3-Clause
// Affine quantisation against the same in float32 and double on the host.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/common/float_bits.h"
#include "ops/common/planned_run.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using pte::GraphDtype;

gpu::Device& shared_device() {
  static gpu::Device device = open_device({.robustness = false});
  return device;
}

std::vector<float> row_values(uint32_t rows, uint32_t width) {
  std::vector<float> x(rows * width);
  for (uint32_t i = 0; i < x.size(); ++i) {
    const uint32_t row = i / width;
    const float value = static_cast<float>(i * 2654435761u >> 8) / (1 << 24) * 2 - 1;
    // Rows of both signs, of one, of zeros, of tiny and of large numbers.
    x[i] = row % 6 == 1   ? std::abs(value)
           : row % 6 == 2 ? -std::abs(value) * 3
           : row % 6 == 3 ? 0.0f
           : row % 6 == 4 ? value * 1e-9f
           : row % 6 == 5 ? value * 1e6f
                          : value;
  }
  return x;
}

void check_qparams(uint32_t rows, uint32_t width, bool is_software, bool keepdim) {
  const std::vector<float> x = row_values(rows, width);
  PlannedRun run(shared_device(),
                 [&](graph::DeviceFacts& facts) { facts.is_software = is_software; });
  const uint32_t input = run.input({1, rows, width}, GraphDtype::float32, x);
  std::vector<uint32_t> dims = {1, rows};
  if (keepdim) {
    dims.push_back(1);
  }
  const uint32_t scales = run.output(dims, GraphDtype::float32);
  const uint32_t zeros = run.output(dims, GraphDtype::int8);
  const std::vector<uint32_t> args = {
      input,
      run.value(std::string("ASYMMETRIC")),
      run.value(pte::IntList{{1, 1, width}}),
      run.null(),
      run.value(int64_t{-128}),
      run.value(int64_t{127}),
      run.null(),
      run.null(),
      run.null(),
      run.value(keepdim),
      run.value(pte::ValueIdList{{scales, zeros}}),
  };
  const auto results = run.run("torchao.choose_qparams_affine.default", args);
  const auto got_scales = values_of<float>(results[0]);
  const auto got_zeros = values_of<int8_t>(results[1]);
  REQUIRE(got_scales.size() == rows);
  REQUIRE(got_zeros.size() == rows);
  for (uint32_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    const auto [low, high] =
        std::minmax_element(x.begin() + row * width, x.begin() + (row + 1) * width);
    const double least = std::min<double>(*low, 0);
    const double scale = std::max((std::max<double>(*high, 0) - least) / 255, 0x1p-23);
    const double zero = std::clamp(-128 - std::nearbyint(least / scale), -128.0, 127.0);
    CHECK(std::abs(got_scales[row] - scale) <= 1e-6 * scale);
    // A quotient next to a half may round either way.
    const double distance = std::abs(least / scale - std::trunc(least / scale));
    const double slack = std::abs(distance - 0.5) < 1e-3 ? 1 : 0;
    CHECK(std::abs(got_zeros[row] - zero) <= slack);
  }
}

TEST_CASE("choose_qparams_affine: rows of every sign and size, in words of four zero points") {
  for (const bool is_software : {true, false}) {
    check_qparams(1, 576, is_software, false);
    check_qparams(7, 64, is_software, false);
    check_qparams(13, 33, is_software, true);
    check_qparams(4, 8192, is_software, false);
    check_qparams(130, 100, is_software, false);
    check_qparams(6, 1, is_software, false);
  }
}

TEST_CASE("quantize_per_tensor: ties to even, clamped, tails of a word; and back") {
  for (const uint32_t count : {1, 4, 7, 1030}) {
    for (const bool is_signed : {true, false}) {
      std::vector<float> x(count);
      for (uint32_t i = 0; i < count; ++i) {
        x[i] = static_cast<float>(i % 300) * 0.25f - 30;
      }
      const GraphDtype type = is_signed ? GraphDtype::int8 : GraphDtype::uint8;
      const int64_t low = is_signed ? -100 : 0;
      const int64_t high = is_signed ? 127 : 250;
      const int64_t zero = is_signed ? -3 : 100;
      PlannedRun run(shared_device());
      const uint32_t input = run.input({count}, GraphDtype::float32, x);
      const uint32_t y = run.output({count}, type);
      const auto bytes = run.run("quantized_decomposed.quantize_per_tensor.default",
                                 {input, run.value(0.5), run.value(zero), run.value(low),
                                  run.value(high), run.null(), y})
                             .front();
      std::vector<int32_t> got(count);
      std::vector<int32_t> want(count);
      for (uint32_t i = 0; i < count; ++i) {
        const auto byte = static_cast<uint8_t>(bytes[i]);
        got[i] = is_signed ? static_cast<int8_t>(byte) : byte;
        want[i] = static_cast<int32_t>(
            std::clamp<double>(std::nearbyint(x[i] * 2.0) + static_cast<double>(zero),
                               static_cast<double>(low), static_cast<double>(high)));
      }
      CHECK(got == want);

      PlannedRun back(shared_device());
      const uint32_t quantized = back.input({count}, type, bytes);
      const uint32_t z = back.output({count}, GraphDtype::float32);
      const auto floats =
          values_of<float>(back.run("quantized_decomposed.dequantize_per_tensor.default",
                                    {quantized, back.value(0.5), back.value(zero), back.value(low),
                                     back.value(high), back.null(), back.null(), z})
                               .front());
      for (uint32_t i = 0; i < count; ++i) {
        CHECK(floats[i] == static_cast<float>(want[i] - zero) * 0.5f);
      }
    }
  }
}

}  // namespace
}  // namespace ptero::ops
