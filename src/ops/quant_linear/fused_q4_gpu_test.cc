// SPDX-License-Identifier: BSD-3-Clause
// ptero.linear_q4gsw against sums in double: norm before, gates and residual after, for every
// kernel that planning may choose.
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

constexpr double kEps = 1e-3;

struct Fused {
  Layer layer;
  bool normed = false;
  bool gated = false;
  bool residual = false;
  std::vector<double> norm;
  std::vector<double> other;

  uint32_t columns() const { return gated ? layer.n / 2 : layer.n; }

  void fill() {
    layer.fill();
    Random random(layer.k + 5);
    norm.resize(layer.k);
    std::generate(norm.begin(), norm.end(), [&] { return 1 + random.number(); });
    other.resize(uint64_t{layer.m} * columns());
    std::generate(other.begin(), other.end(), [&] { return random.number(); });
  }

  // All of y, and by how much each element may be wrong if a product is by 2.3e-4 of the sum of the
  // sizes of what it adds.
  struct Wanted {
    std::vector<double> y;
    std::vector<double> slack;
  };
  Wanted want() const {
    Layer used = layer;
    for (uint32_t row = 0; normed && row < layer.m; ++row) {
      double squares = 0;
      for (uint32_t i = 0; i < layer.k; ++i) {
        squares += std::pow(layer.x[uint64_t{row} * layer.k + i], 2);
      }
      for (uint32_t i = 0; i < layer.k; ++i) {
        used.x[uint64_t{row} * layer.k + i] *= norm[i] / std::sqrt(squares / layer.k + kEps);
      }
    }
    std::vector<double> y;
    std::vector<double> slack;
    for (uint32_t row = 0; row < layer.m; ++row) {
      for (uint32_t column = 0; column < columns(); ++column) {
        double value = used.want(row, column);
        double error = 2.3e-4 * used.sum_of_sizes(row, column);
        if (gated) {
          const double factor = used.want(row, column + columns());
          value /= 1 + std::exp(-value);
          // No gate is steeper than 1.1.
          error = 1.1 * error * std::abs(factor) +
                  2.3e-4 * used.sum_of_sizes(row, column + columns()) * std::abs(value);
          value *= factor;
        }
        y.push_back(value + (residual ? other[y.size()] : 0));
        slack.push_back(error);
      }
    }
    return {y, slack};
  }
};

std::vector<float> run_fused(PlannedRun& run, const Fused& fused) {
  const Layer& layer = fused.layer;
  const uint32_t x = add_floats(run, {1, layer.m, layer.k}, layer.x, false);
  const uint32_t weight = run.input({layer.n, layer.row_bytes}, GraphDtype::uint8, layer.weight);
  const uint32_t scales = add_floats(run, {layer.groups, layer.scale_row}, layer.scales, false);
  const uint32_t group = run.value(int64_t{layer.group});
  const uint32_t bias =
      layer.bias ? add_floats(run, {layer.scale_row}, layer.addend, false) : run.null();
  const uint32_t norm = fused.normed ? add_floats(run, {layer.k}, fused.norm, false) : run.null();
  const uint32_t residual = fused.residual
                                ? add_floats(run, {1, layer.m, fused.columns()}, fused.other, false)
                                : run.null();
  const uint32_t y = run.output({1, layer.m, fused.columns()}, GraphDtype::float32);
  return values_of<float>(
      run.run("ptero.linear_q4gsw.default", {x, weight, scales, group, bias, run.value(fused.gated),
                                             norm, run.value(kEps), residual, y})
          .front());
}

// In single precision unless the way asks for less.
void check_fused(PlannedRun& run, const Way& way, Fused fused) {
  fused.fill();
  const std::vector<float> got = run_fused(run, fused);
  const auto [want, slack] = fused.want();
  const bool half = multiplies_in_half(way, run.kernels());
  REQUIRE(got.size() == want.size());
  size_t wrong = 0;
  std::string first;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(got[i] - want[i]);
    const bool close =
        error <= 1e-4 || error <= 1e-3 * std::abs(want[i]) || (half && error <= slack[i]);
    if (!close && wrong++ == 0) {
      first = fmt::format("y[{}, {}] is {} and not {}", i / fused.columns(), i % fused.columns(),
                          got[i], want[i]);
    }
  }
  INFO(fmt::format("{} x {} x {}, norm {}, gates {}, residual {}", fused.layer.m, fused.layer.n,
                   fused.layer.k, fused.normed, fused.gated, fused.residual));
  CHECK_MESSAGE(wrong == 0, first);
}

TEST_CASE("operator ptero.linear_q4gsw.default") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const uint32_t m : {1, 2, 3, 4, 7, 16, 17, 40, 130}) {
      for (const bool normed : {false, true}) {
        const Layer layer{.m = m, .n = 134, .k = 160};
        PlannedRun gated(shared_device(), way.change);
        check_fused(gated, way, {.layer = layer, .normed = normed, .gated = true});
        PlannedRun residual(shared_device(), way.change);
        check_fused(residual, way, {.layer = layer, .normed = normed, .residual = true});
        PlannedRun plain(shared_device(), way.change);
        check_fused(plain, way,
                    {.layer = {.m = m, .n = 77, .k = 160, .bias = true}, .normed = normed});
      }
    }
  }
}

TEST_CASE("fused q4gsw: wide rows, odd halves, groups of every kind") {
  struct Size {
    uint32_t n, k, group;
  };
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    for (const Size size : {Size{1026, 2048, 64},
                            {62, 2048, 32},
                            {30, 576, 512},
                            {2, 64, 32},
                            {6, 200, 8},
                            {10, 20, 4},
                            {38, 90, 7}}) {
      for (const uint32_t m : {1, 5, 20}) {
        const Layer layer{.m = m, .n = size.n, .k = size.k, .group = size.group};
        PlannedRun gated(shared_device(), way.change);
        check_fused(gated, way, {.layer = layer, .normed = true, .gated = true});
        PlannedRun residual(shared_device(), way.change);
        check_fused(residual, way, {.layer = layer, .normed = true, .residual = true});
      }
    }
  }
}

TEST_CASE("fused q4gsw: weights beyond the largest binding") {
  for (const Way& way : ways()) {
    CAPTURE(std::string(way.name));
    const Change change = [&](graph::DeviceFacts& facts) {
      way.change(facts);
      facts.limits.max_storage_binding_size = 129 * 256;
      facts.limits.min_storage_offset_alignment = 256;
    };
    for (const uint32_t m : {1, 5, 13}) {
      PlannedRun residual(shared_device(), change);
      check_fused(residual, way, {.layer = {.m = m, .n = 498, .k = 512}, .residual = true});
      CHECK(residual.kernels().size() >= 4);
      PlannedRun gated(shared_device(), change);
      check_fused(gated, way,
                  {.layer = {.m = m, .n = 498, .k = 512}, .normed = true, .gated = true});
      CHECK(gated.kernels().size() >= 6);
      CHECK(gated.kernels().front() == "rms_norm");
      CHECK(gated.kernels().back() == "swiglu");
    }
  }
}

TEST_CASE("fused q4gsw: decoding on a GPU is one dispatch") {
  using Names = std::vector<std::string>;
  const auto kernels = [&](size_t way, uint32_t m) {
    PlannedRun run(shared_device(), ways()[way].change);
    check_fused(run, ways()[way],
                {.layer = {.m = m, .n = 64, .k = 64}, .normed = true, .gated = true});
    return run.kernels();
  };
  const bool subgroups = shared_device().features().contains(gpu::Feature::subgroups);
  CHECK(kernels(0, 1) == Names{"rms_norm", "q4_column"});
  CHECK(kernels(0, 20) == Names{"rms_norm", "q4_column_rows"});
  CHECK(kernels(1, 1) == Names{subgroups ? "q4_gemv_subgroup" : "q4_gemv"});
  CHECK(kernels(1, 20) == Names{"rms_norm", "q4_steel", "swiglu"});
  CHECK(kernels(3, 1) == Names{"q4_gemv"});
  CHECK(kernels(4, 1) == kernels(1, 1));
  if (half_kernel() == "q4_matrix") {
    CHECK(kernels(4, 20) == Names{"rms_norm", "q4_matrix"});  // with the gates
  } else {
    CHECK(kernels(4, 20) == Names{"rms_norm", half_kernel(), "swiglu"});
  }
}

}  // namespace
}  // namespace ptero::ops
