// SPDX-License-Identifier: BSD-3-Clause
// The kernels of 4-bit linear layers with many rows, by name, at their bounds. On SwiftShader,
// which has no shader-f16, those in f16 give way to the one in f32 and are held to its bounds.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/quant_linear/q4_named_test.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using namespace q4_testing;

std::vector<double> run_named(const std::string& name, const Layer& layer) {
  PlannedRun run(shared_device(), named(name));
  const std::vector<double> got = run_layer(run, layer);
  const bool half = has_half() && name != "steel" && name != "tile";
  const std::string kernel = name == "tile"                           ? "q4_tile"
                             : half && name == "matrix"               ? half_kernel()
                             : half && name == "steel_f16_packed"     ? "q4_steel_packed"
                             : half && name == "steel_f16_accumulate" ? "q4_steel_accumulate"
                                                                      : "q4_steel";
  CHECK(run.kernels() == std::vector<std::string>{kernel});
  REQUIRE(got.size() == uint64_t{layer.m} * layer.n);
  return got;
}

TEST_CASE("q4 tiles: every kernel, odd shapes, every group, biases") {
  for (const char* name :
       {"tile", "steel", "steel_f16", "steel_f16_packed", "steel_f16_accumulate", "matrix"}) {
    CAPTURE(std::string(name));
    const bool half =
        has_half() && std::string_view(name) != "tile" && std::string_view(name) != "steel";
    const bool accumulate = half && std::string_view(name) == "steel_f16_accumulate";
    for (const uint32_t m : {17, 63, 64, 65, 130}) {
      for (const auto [n, k, group] : {std::array<uint32_t, 3>{1, 8, 8},
                                       {63, 24, 8},
                                       {64, 72, 24},
                                       {65, 128, 16},
                                       {136, 320, 64},
                                       {70, 256, 256},
                                       {99, 160, 32}}) {
        Layer layer{.m = m, .n = n, .k = k, .group = group, .bias = m % 2 == 1};
        layer.fill();
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        const double each = accumulate ? 3e-3 : 0x1p-11;
        CHECK(elements_wrong(layer, run_named(name, layer),
                             [&](double got, double want, double sizes) {
                               return half ? std::abs(got - want) <= each * sizes + 1e-6
                                           : close_in_f32(got, want, sizes);
                             }) == 0);
      }
    }
  }
}

TEST_CASE("q4 tiles in f32 and with products in f16: ramps of sixteenths") {
  for (const char* name : {"steel", "steel_f16", "steel_f16_packed", "matrix"}) {
    CAPTURE(std::string(name));
    for (const auto [m, n, k, group] : {std::array<uint32_t, 4>{96, 256, 2048, 64},
                                        {70, 136, 1024, 8},
                                        {70, 136, 1024, 64},
                                        {33, 65, 1032, 8},
                                        {128, 64, 8192, 128}}) {
      const Layer layer = ramp_layer(m, n, k, group);
      CAPTURE(k);
      CAPTURE(group);
      CHECK(elements_wrong(layer, run_named(name, layer),
                           [](double got, double want, double /*sizes*/) {
                             const double error = std::abs(got - want);
                             return error <= 2.3e-4 || error <= 2.3e-4 * std::abs(want);
                           }) == 0);
    }
  }
}

TEST_CASE("q4 tiles in f32 and with products in f16: normal data") {
  for (const char* name : {"steel", "steel_f16", "steel_f16_packed", "matrix"}) {
    CAPTURE(std::string(name));
    const bool half = has_half() && std::string_view(name) != "steel";
    for (const auto [m, n, k, group] : {std::array<uint32_t, 4>{96, 128, 2048, 64},
                                        {20, 136, 1024, 8},
                                        {70, 65, 256, 32},
                                        {20, 64, 8192, 128}}) {
      const Layer layer = normal_layer(m, n, k, group);
      const std::vector<double> got = run_named(name, layer);
      CAPTURE(k);
      CHECK(elements_wrong(layer, got, [&](double value, double want, double sizes) {
              return half ? std::abs(value - want) <= 2.3e-4 * sizes
                          : close_in_f32(value, want, sizes);
            }) == 0);
    }
  }
}

TEST_CASE("q4 tiles: taking the weight apart by words changes no bit") {
  for (const auto [m, n, k, group] :
       {std::array<uint32_t, 4>{96, 128, 2048, 64}, {65, 131, 1032, 8}, {20, 70, 256, 256}}) {
    const Layer layer = normal_layer(m, n, k, group);
    CHECK(run_named("steel_f16", layer) == run_named("steel_f16_packed", layer));
  }
}

TEST_CASE("q4 tiles: what sums in f16 lose") {
  struct Bound {
    uint32_t k;
    double of_sizes;  // largest error as a part of the sum of sizes
    double rms;       // root of the mean square error as a part of that of y
  };
  for (const Bound bound : {Bound{2048, 1e-3, 5e-3}, {8192, 1e-3, 1e-2}}) {
    const Layer layer = normal_layer(64, 64, bound.k, 64);
    const std::vector<double> got = run_named("steel_f16_accumulate", layer);
    double largest = 0;
    double errors = 0;
    double squares = 0;
    for (uint32_t i = 0; i < got.size(); ++i) {
      const double want = layer.want(i / 64, i % 64);
      const double error = std::abs(got[i] - want);
      largest = std::max(largest, error / layer.sum_of_sizes(i / 64, i % 64));
      errors += error * error;
      squares += want * want;
    }
    const double rms = std::sqrt(errors / squares);
    MESSAGE("k = " << bound.k << ": at most " << largest << " of the sum of sizes, rms " << rms
                   << " of that of y");
    CHECK(largest <= bound.of_sizes);
    CHECK(rms <= bound.rms);
    if (has_half()) {
      CHECK(rms > 1e-4);  // it is not the kernel that adds up in f32
    }
  }
}

TEST_CASE("q4 tiles: a grid too small for the tiles") {
  for (const char* name : {"any", "column", "tile", "steel", "steel_f16_packed", "matrix"}) {
    CAPTURE(std::string(name));
    PlannedRun run(shared_device(), [&](graph::DeviceFacts& facts) {
      named(name)(facts);
      facts.limits.max_workgroups_per_dimension = 8;
      facts.limits.min_storage_offset_alignment = 256;
    });
    Layer layer{.m = 200, .n = 1601, .k = 32, .group = 8, .bias = true};
    layer.fill();
    const std::vector<double> got = run_layer(run, layer);
    CHECK(run.kernels().size() > 1);
    CHECK(elements_wrong(layer, got, [&](double value, double want, double sizes) {
            return close_in_f32(value, want, sizes) || std::abs(value - want) <= 0x1p-11 * sizes;
          }) == 0);
  }
}

// What planning asks for with these facts, for either type.
std::vector<gpu::KernelKey> planned_kernels(const graph::DeviceFacts& facts, uint32_t m, uint32_t k,
                                            uint32_t group, bool swapped, GraphDtype type) {
  OneOpFixture op;
  op.device = facts;
  const uint32_t x = op.input({m, k}, type);
  const uint32_t weight = op.input({72, (k + 7) / 8 * 4}, GraphDtype::uint8);
  std::shared_ptr<const graph::Plan> plan;
  if (swapped) {
    const uint32_t scales = op.input({72}, type);
    plan =
        must(op.plan("et_vk.linear_qcs4w.default", {x, weight, scales, op.output({m, 72}, type)}));
  } else {
    const uint32_t scales = op.input({(k + group - 1) / group, 72}, type);
    plan = must(op.plan("et_vk.linear_q4gsw.default", {x, weight, scales, op.value(int64_t{group}),
                                                       op.null(), op.output({m, 72}, type)}));
  }
  std::vector<gpu::KernelKey> keys;
  for (size_t i = 0; i < plan->dispatches(); ++i) {
    keys.push_back(dispatch_at(*plan, i).kernel);
  }
  return keys;
}

TEST_CASE("q4: every kernel that planning may ask for compiles") {
  using gpu::Feature;
  for (const bool everything : {true, false}) {
    gpu::FeatureSet disabled;
    if (!everything) {
      disabled = {Feature::shader_f16, Feature::subgroups,  Feature::subgroup_matrix,
                  Feature::packed_dot, Feature::timestamps, Feature::immediates};
    }
    gpu::Device device = open_device({.disabled = disabled, .robustness = false});
    std::vector<GraphDtype> types = {GraphDtype::float32};
    if (device.features().contains(Feature::shader_f16)) {
      types.push_back(GraphDtype::float16);
    }
    std::set<std::string> names;
    for (const graph::PlanOptionInfo& info : graph::plan_option_list()) {
      if (info.key != "q4_gemm") {
        continue;
      }
      for (const std::string_view name : info.values) {
        for (const bool software : {false, true}) {
          for (const uint32_t threads : {64, 128, 256}) {
            graph::DeviceFacts facts = graph::device_facts(device);
            facts.is_software = software;
            facts.options.q4_gemm = name;
            facts.limits.max_invocations_per_workgroup =
                std::min(facts.limits.max_invocations_per_workgroup, threads);
            for (const uint32_t m : {1, 2, 4, 20}) {
              for (const GraphDtype type : types) {
                for (const auto [k, group] :
                     {std::array<uint32_t, 2>{256, 32}, {256, 16}, {256, 8}, {20, 4}}) {
                  for (const bool swapped : {false, true}) {
                    for (const gpu::KernelKey& key :
                         planned_kernels(facts, m, k, group, swapped, type)) {
                      must(device.prepare({key}));
                      names.emplace(key.source->name);
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
    std::set<std::string> want = {"q4_any",  "q4_column", "q4_column_rows",
                                  "q4_gemv", "q4_tile",   "q4_steel"};
    if (device.features().contains(Feature::shader_f16)) {
      want.insert({"q4_steel_packed", "q4_steel_accumulate"});
    }
    if (device.features().contains(Feature::subgroups)) {
      want.insert("q4_gemv_subgroup");
      want.erase("q4_gemv");
    }
    if (device.features().contains(Feature::subgroup_matrix)) {
      want.insert("q4_matrix");
    }
    CHECK(names == want);
  }
}

}  // namespace
}  // namespace ptero::ops
