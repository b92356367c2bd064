// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/norm/layer_norm.wgsl.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/rms_norm.wgsl.h"
#include "ops/norm/testing/rms_norm_scalar.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;

double override_of(const graph::PlannedDispatch& dispatch, std::string_view name) {
  return *gpu::override_value(dispatch.kernel, name);
}

TEST_CASE("rms_norm: eps as Double, Int or Null") {
  OneOpFixture op;
  const uint32_t x = op.input({2, 3, 67});
  const uint32_t weight = op.input({67});
  const uint32_t y = op.output({2, 3, 67});
  const auto eps_of = [&](uint32_t eps) {
    const auto plan = op.plan("et_vk.rms_norm.default", {x, weight, eps, y});
    REQUIRE(plan.ok());
    const auto params = params_of<wgsl::RmsNormParams>(dispatch_at(**plan, 0));
    CHECK(params.rows == 6);
    CHECK(params.width == 67);
    return params.eps;
  };
  CHECK(eps_of(op.value(1e-5)) == 1e-5f);
  CHECK(eps_of(op.value(int64_t{1})) == 1.0f);
  CHECK(eps_of(op.null()) == std::numeric_limits<float>::epsilon());
}

// Where the kernel in f32 without wide loads comes from: rms_norm_scalar.wgsl is the kernel that
// was there before the variants, byte for byte (its checksum is that of the file of then), and
// rms_norm_gpu_test.cc compares the bits that the two give on the adapter at hand. A change of this
// form of the kernel changes the second checksum: run that test before writing down the new one.
TEST_CASE("rms_norm: checksums of the kernel before, and of the form in f32 of today") {
  CHECK(wgsl::kRmsNormScalar.hash == 0xea38e0eac3e12031u);
  const auto key = rms_norm_key({}, {}, {.wg_size = 64, .lanes = 64, .grid = {}});
  REQUIRE(key.ok());
  const auto module = gpu::assemble_wgsl(*key, gpu::ParamsRoute::uniform);
  REQUIRE(module.ok());
  uint64_t checksum = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : module->text) {
    checksum = (checksum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  CHECK(checksum == 0x1c49018ab6004306u);
}

TEST_CASE("rms_norm: width of loads, threads of a row, and grids that fold") {
  OneOpFixture op;
  const auto plan_of = [&](uint32_t rows, uint32_t width, GraphDtype type = GraphDtype::float32) {
    const auto plan =
        op.plan("et_vk.rms_norm.default", {op.input({rows, width}, type), op.input({width}, type),
                                           op.value(1e-5), op.output({rows, width}, type)});
    REQUIRE(plan.ok());
    return dispatch_at(**plan, 0);
  };
  const auto expect = [](const graph::PlannedDispatch& dispatch, const char* variant,
                         uint32_t width, double lanes, double wg_size) {
    CHECK(dispatch.kernel.prelude == make_variant(*parse_variant(variant))->prelude);
    CHECK(params_of<wgsl::RmsNormParams>(dispatch).width == width);
    CHECK(override_of(dispatch, "lanes") == lanes);
    CHECK(override_of(dispatch, "wg_size") == wg_size);
  };
  const auto narrow = plan_of(65537, 4);
  expect(narrow, "f32x4", 1, 1, 64);
  CHECK(narrow.grid == gpu::Grid{1025, 1, 1});
  const auto wide = plan_of(70000, 2048);
  expect(wide, "f32x4", 512, 128, 128);
  CHECK(wide.grid == gpu::Grid{35000, 2, 1});
  expect(plan_of(1, 576), "f32x4", 144, 128, 128);
  expect(plan_of(1, 2048), "f32x4", 512, 256, 256);
  expect(plan_of(3, 8192), "f32x4", 2048, 256, 256);
  expect(plan_of(3, 66, GraphDtype::float16), "f16x2", 33, 32, 64);
  expect(plan_of(3, 67), "f32", 67, 64, 64);
  op.device.limits.max_invocations_per_workgroup = 128;
  expect(plan_of(3, 8192), "f32x4", 2048, 128, 128);
  op.device.features.insert(gpu::Feature::subgroups);
  op.device.subgroup_min_size = op.device.subgroup_max_size = 32;
  const auto shared = plan_of(3, 8192);
  expect(shared, "f32x4+subgroups", 2048, 128, 128);
  CHECK(override_of(shared, "one_subgroup") == 0);
}

TEST_CASE("rms_norm on a software adapter: a row a thread, or a row for threads in step") {
  OneOpFixture op;
  op.device.is_software = true;
  const auto plan_of = [&](uint32_t rows) {
    const auto plan = op.plan("et_vk.rms_norm.default", {op.input({rows, 576}), op.input({576}),
                                                         op.value(1e-5), op.output({rows, 576})});
    REQUIRE(plan.ok());
    return dispatch_at(**plan, 0);
  };
  CHECK(override_of(plan_of(127), "lanes") == 1);
  CHECK(plan_of(127).grid == gpu::Grid{16, 1, 1});
  CHECK(override_of(plan_of(1), "lanes") == 8);
  CHECK(override_of(plan_of(1), "wg_size") == 8);
  CHECK(override_of(plan_of(1), "one_subgroup") == 0);
  op.device.features.insert(gpu::Feature::subgroups);
  op.device.subgroup_min_size = op.device.subgroup_max_size = 4;
  CHECK(override_of(plan_of(1), "wg_size") == 4);
  CHECK(override_of(plan_of(1), "one_subgroup") == 1);
  op.device.subgroup_min_size = 1;  // not for sure
  CHECK(override_of(plan_of(1), "one_subgroup") == 0);
}

TEST_CASE("rms_norm: wrong arguments are refused, no rows do not run") {
  OneOpFixture op;
  const uint32_t x = op.input({3, 8});
  const uint32_t y = op.output({3, 8});
  const uint32_t eps = op.value(1e-5);
  CHECK(op.plan_error("et_vk.rms_norm.default", {x, op.input({7}), eps, y}).message() ==
        "Number of elements (7) of the weight differs from what is normalised (8).");
  CHECK(op.plan_error("et_vk.rms_norm.default", {x, op.input({8}, GraphDtype::float16), eps, y})
            .code() == ErrorCode::unsupported);
  CHECK(op.plan_error("et_vk.rms_norm.default", {op.input({}), op.input({1}), eps, op.output({})})
            .code() == ErrorCode::invalid_program);
  const auto none =
      op.plan("et_vk.rms_norm.default", {op.input({0, 8}), op.input({8}), eps, op.output({0, 8})});
  REQUIRE(none.ok());
  CHECK((*none)->commands.empty());
}

TEST_CASE("native_layer_norm: last dimensions, three results, optional weight and bias") {
  OneOpFixture op;
  const uint32_t x = op.input({2, 3, 5, 7});
  const uint32_t weight = op.input({5, 7});
  const uint32_t y = op.output({2, 3, 5, 7});
  const uint32_t mean = op.output({2, 3, 1, 1});
  const uint32_t rstd = op.output({2, 3, 1, 1});
  const uint32_t results = op.list({y, mean, rstd});
  const uint32_t dims = op.integers({5, 7});
  const uint32_t eps = op.value(1e-3);
  const auto plan =
      op.plan("aten.native_layer_norm.default", {x, dims, weight, op.null(), eps, results});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[1] == Shape{2, 3, 1, 1});
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<wgsl::LayerNormParams>(dispatch);
  CHECK(params.rows == 6);
  CHECK(params.width == 35);
  CHECK(params.eps == 1e-3f);
  CHECK(params.flags == 1);
  CHECK(dispatch.bindings[2].id == dispatch.bindings[0].id);  // no bias: anything

  CHECK(op.plan_error("aten.native_layer_norm.default",
                      {x, op.integers({4, 7}), weight, op.null(), eps, results})
            .message() ==
        "Normalised dimension 0 (4) differs from that of the input [2, 3, 5, 7].");
  CHECK(op.plan_error("aten.native_layer_norm.default",
                      {x, dims, op.null(), op.input({7}), eps, results})
            .message() ==
        "Number of elements (7) of the bias differs from what is normalised (35).");
}

}  // namespace
}  // namespace ptero::ops
