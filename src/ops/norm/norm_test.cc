// SPDX-License-Identifier: BSD-3-Clause
#include <limits>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/norm/layer_norm.wgsl.h"
#include "ops/norm/rms_norm.wgsl.h"

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

TEST_CASE("rms_norm: threads of a row, and grids that fold") {
  OneOpFixture op;
  const auto plan_of = [&](uint32_t rows, uint32_t width) {
    const auto plan = op.plan("et_vk.rms_norm.default", {op.input({rows, width}), op.input({width}),
                                                         op.value(1e-5), op.output({rows, width})});
    REQUIRE(plan.ok());
    return dispatch_at(**plan, 0);
  };
  const auto narrow = plan_of(65537, 4);
  CHECK(override_of(narrow, "lanes") == 1);
  CHECK(narrow.grid == gpu::Grid{1025, 1, 1});
  const auto wide = plan_of(70000, 2048);
  CHECK(override_of(wide, "lanes") == 64);
  CHECK(wide.grid == gpu::Grid{35000, 2, 1});
  const auto long_rows = plan_of(3, 8192);
  CHECK(override_of(long_rows, "lanes") == 256);
  CHECK(override_of(long_rows, "wg_size") == 256);
  op.device.limits.max_invocations_per_workgroup = 128;
  CHECK(override_of(plan_of(3, 8192), "wg_size") == 64);
  op.device.is_software = true;
  CHECK(override_of(plan_of(128, 2048), "lanes") == 1);
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
