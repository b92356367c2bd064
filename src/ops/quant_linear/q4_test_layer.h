// SPDX-License-Identifier: BSD-3-Clause
// 4-bit linear layers with random contents and their results in double; for GPU tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "ops/common/float_bits.h"
#include "ops/common/planned_run.h"

namespace ptero::ops::q4_testing {

using pte::GraphDtype;

inline gpu::Device& shared_device() {
  static gpu::Device device = gpu::testing::open_device({.robustness = false});
  return device;
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761u + 1) {}
  uint64_t bits() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((bits() >> 20) % n); }
  // Exact in float16.
  double number() { return (static_cast<double>(below(513)) - 256) / 256; }

 private:
  uint64_t state_;
};

// A layer with random contents, all exact in float16.
struct Layer {
  uint32_t m = 1;
  uint32_t n = 1;
  uint32_t k = 8;
  uint32_t group = 32;
  bool bias = false;
  bool half = false;
  bool swapped = false;    // linear_qcs4w
  uint32_t row_bytes = 0;  // 0: k rounded up to whole words

  uint32_t groups = 0;
  uint32_t scale_row = 0;
  std::vector<double> x;
  std::vector<uint8_t> weight;
  std::vector<double> scales;
  std::vector<double> addend;

  void fill() {
    Random random(m * 31 + n * 7 + k);
    row_bytes = row_bytes != 0 ? row_bytes : (k + 7) / 8 * 4;
    group = swapped ? k : group;
    groups = (k + group - 1) / group;
    scale_row = swapped ? n : (n + 3) / 4 * 4;
    weight.resize((uint64_t{n} * row_bytes + 7) / 8 * 8);
    for (size_t i = 0; i < weight.size(); i += 8) {
      const uint64_t bits = random.bits();
      std::memcpy(&weight[i], &bits, 8);
    }
    weight.resize(uint64_t{n} * row_bytes);
    x.resize(uint64_t{m} * k);
    for (double& value : x) {
      value = random.number();
    }
    scales.resize(uint64_t{groups} * scale_row);
    for (double& value : scales) {
      value = (1 + random.below(64)) / 1024.0;
    }
    if (bias) {
      addend.resize(scale_row);
      for (double& value : addend) {
        value = random.number();
      }
    }
  }

  double dequantized(uint32_t row, uint32_t column) const {
    const uint8_t byte = weight[uint64_t{row} * row_bytes + column / 2];
    const int nibble = (column % 2 == 0) != swapped ? byte & 15 : byte >> 4;
    return (nibble - 8) * scales[uint64_t{column / group} * scale_row + row];
  }

  // The sum of what want() adds, each without its sign.
  double sum_of_sizes(uint32_t row, uint32_t column) const {
    double sum = 0;
    for (uint32_t i = 0; i < k; ++i) {
      sum += std::abs(x[uint64_t{row} * k + i] * dequantized(column, i));
    }
    return sum;
  }

  double want(uint32_t row, uint32_t column) const {
    double sum = bias ? addend[column] : 0;
    for (uint32_t i = 0; i < k; ++i) {
      sum += x[uint64_t{row} * k + i] * dequantized(column, i);
    }
    return sum;
  }
};

inline uint32_t add_floats(PlannedRun& run, std::vector<uint32_t> dims,
                           const std::vector<double>& values, bool half) {
  if (half) {
    std::vector<uint16_t> bits(values.size());
    std::transform(values.begin(), values.end(), bits.begin(), half_of_float);
    return run.input(std::move(dims), GraphDtype::float16, bits);
  }
  return run.input(std::move(dims), GraphDtype::float32,
                   std::vector<float>(values.begin(), values.end()));
}

// y, as the device makes it.
inline std::vector<double> run_layer(PlannedRun& run, const Layer& layer) {
  const GraphDtype type = layer.half ? GraphDtype::float16 : GraphDtype::float32;
  const uint32_t x = add_floats(run, {1, layer.m, layer.k}, layer.x, layer.half);
  const uint32_t weight = run.input({layer.n, layer.row_bytes}, GraphDtype::uint8, layer.weight);
  std::vector<uint32_t> scale_dims = {layer.groups, layer.scale_row};
  if (layer.swapped) {
    scale_dims.erase(scale_dims.begin());
  }
  const uint32_t scales = add_floats(run, scale_dims, layer.scales, layer.half);
  const uint32_t y = run.output({1, layer.m, layer.n}, type);
  std::vector<std::byte> bytes;
  if (layer.swapped) {
    bytes = run.run("et_vk.linear_qcs4w.default", {x, weight, scales, y}).front();
  } else {
    const uint32_t group = run.value(int64_t{layer.group});
    const uint32_t bias =
        layer.bias ? add_floats(run, {layer.scale_row}, layer.addend, layer.half) : run.null();
    bytes = run.run("et_vk.linear_q4gsw.default", {x, weight, scales, group, bias, y}).front();
  }
  if (layer.half) {
    const auto bits = gpu::testing::values_of<uint16_t>(bytes);
    std::vector<double> values(bits.size());
    std::transform(bits.begin(), bits.end(), values.begin(), float_of_half);
    return values;
  }
  const auto floats = gpu::testing::values_of<float>(bytes);
  return {floats.begin(), floats.end()};
}

using Change = std::function<void(graph::DeviceFacts&)>;

struct Way {
  const char* name;
  Change change;
  bool half = false;  // products of many rows in f16
};

// The facts of devices for which planning takes different kernels.
inline std::vector<Way> ways() {
  const bool half = shared_device().features().contains(gpu::Feature::shader_f16);
  return {
      {"as a CPU", [](graph::DeviceFacts& facts) { facts.is_software = true; }},
      {"as a GPU", [](graph::DeviceFacts& facts) { facts.is_software = false; }, half},
      {"as a GPU without shader-f16",
       [](graph::DeviceFacts& facts) {
         facts.is_software = false;
         facts.options.q4_gemm = "steel";
       }},
      {"as a small GPU without subgroups",
       [](graph::DeviceFacts& facts) {
         facts.is_software = false;
         facts.features.erase(gpu::Feature::subgroups);
         facts.limits.max_invocations_per_workgroup = 128;
       }},
      {"as a GPU that may multiply in f16",
       [](graph::DeviceFacts& facts) {
         facts.is_software = false;
         facts.options.enable_f16_gemm = true;
       },
       half},
  };
}

// Whether a way's kernel multiplies in f16.
inline bool multiplies_in_half(const Way& way, const std::vector<std::string>& kernels) {
  return way.half && std::any_of(kernels.begin(), kernels.end(), [](const std::string& name) {
           return name.starts_with("q4_steel") || name == "q4_matrix";
         });
}

// The kernel of that way with many rows.
inline std::string half_kernel() {
  return shared_device().features().contains_all(
             {gpu::Feature::shader_f16, gpu::Feature::subgroup_matrix})
             ? "q4_matrix"
             : "q4_steel";
}

}  // namespace ptero::ops::q4_testing
