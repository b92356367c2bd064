// SPDX-License-Identifier: BSD-3-Clause
// Contents and bounds for the kernels of 4-bit linear layers that have a name; for GPU tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ops/quant_linear/q4_test_layer.h"

namespace ptero::ops::q4_testing {

inline bool has_half() {
  return shared_device().features().contains(gpu::Feature::shader_f16);
}

inline Change named(std::string name) {
  return [name](graph::DeviceFacts& facts) {
    facts.is_software = false;
    facts.options.q4_gemm = name;
  };
}

// Elements that fail `close`(got, want, sum of sizes), of every `step`-th.
template <typename Close>
size_t elements_wrong(const Layer& layer, const std::vector<double>& got, Close close,
                      uint32_t step = 1) {
  size_t wrong = 0;
  for (uint32_t m = 0; m < layer.m; ++m) {
    for (uint32_t n = m % step; n < layer.n; n += step) {
      const double value = got[uint64_t{m} * layer.n + n];
      wrong += close(value, layer.want(m, n), layer.sum_of_sizes(m, n)) ? 0 : 1;
    }
  }
  return wrong;
}

inline bool close_in_f32(double got, double want, double /*sizes*/) {
  const double error = std::abs(got - want);
  return error <= 1e-4 || error <= 1e-3 * std::abs(want);
}

// x and scales in sixteenths, so that products are exact in f16 and sums in f32, but not in f16.
inline Layer ramp_layer(uint32_t m, uint32_t n, uint32_t k, uint32_t group) {
  Layer layer{.m = m, .n = n, .k = k, .group = group};
  layer.fill();
  for (uint32_t i = 0; i < m * k; ++i) {
    layer.x[i] = (static_cast<double>(i % 17) - 8) / 16;
  }
  for (uint32_t i = 0; i < layer.scales.size(); ++i) {
    layer.scales[i] = (1 + i % 4) / 16.0;
  }
  return layer;
}

// x normal, scales as those of trained weights.
inline Layer normal_layer(uint32_t m, uint32_t n, uint32_t k, uint32_t group) {
  Layer layer{.m = m, .n = n, .k = k, .group = group};
  layer.fill();
  std::mt19937 random(k + group);
  std::normal_distribution<float> normal;
  for (double& value : layer.x) {
    value = static_cast<double>(normal(random));
  }
  std::uniform_real_distribution<float> scale(0.002f, 0.02f);
  for (double& value : layer.scales) {
    value = static_cast<double>(scale(random));
  }
  return layer;
}

}  // namespace ptero::ops::q4_testing
