// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <string>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/common/pointwise_binary.wgsl.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;
using wgsl::PointwiseBinaryParams;

TEST_CASE("binary: alpha is an exact integer for integers, and wraps; a float for floats") {
  OneOpFixture f;
  const uint32_t alpha = f.value(int64_t{16777217});
  SUBCASE("int32") {
    const uint32_t y = f.output({3}, GraphDtype::int32);
    const uint32_t x = f.input({3}, GraphDtype::int32);
    const auto plan = f.plan("aten.add.Tensor", {x, x, alpha, y});
    REQUIRE(plan.ok());
    CHECK(params_of<PointwiseBinaryParams>(dispatch_at(**plan, 0)).s[0] == 16777217);
    const auto negative = f.plan("aten.add.Tensor", {x, x, f.value(int64_t{-2}), y});
    REQUIRE(negative.ok());
    CHECK(params_of<PointwiseBinaryParams>(dispatch_at(**negative, 0)).s[0] == 0xfffffffe);
    CHECK_FALSE(f.plan("aten.add.Tensor", {x, x, f.value(0.5), y}).ok());
  }
  SUBCASE("float32, with the Int that the exporter shares with 2.0") {
    const uint32_t x = f.input({3});
    const auto plan = f.plan("aten.sub.Tensor", {x, x, f.value(int64_t{2}), f.output({3})});
    REQUIRE(plan.ok());
    CHECK(params_of<PointwiseBinaryParams>(dispatch_at(**plan, 0)).s[0] ==
          std::bit_cast<uint32_t>(2.0f));
  }
}

TEST_CASE("binary: division has its modes, and integers divide to floats without one") {
  OneOpFixture f;
  const uint32_t x = f.input({3}, GraphDtype::int32);
  const uint32_t ints = f.output({3}, GraphDtype::int32);
  const uint32_t floats = f.output({3});
  const auto key = [&](std::string mode) {
    const auto plan = f.plan("aten.div.Tensor_mode", {x, x, f.value(std::move(mode)), ints});
    REQUIRE(plan.ok());
    return dispatch_at(**plan, 0).kernel.prelude;
  };
  CHECK(key("floor") != key("trunc"));
  CHECK(f.plan("aten.div.Tensor", {x, x, floats}).ok());
  CHECK(f.plan("aten.div.Tensor_mode", {x, x, f.null(), floats}).ok());
  CHECK(f.plan_error("aten.div.Tensor", {x, x, ints}).message() ==
        "Element type (int32) of the result is not float.");
  CHECK(f.plan_error("aten.div.Tensor_mode", {x, x, f.value(std::string("up")), ints}).message() ==
        "Rounding mode (up) is neither floor nor trunc.");
}

TEST_CASE("binary: wrong types and shapes are errors that name them") {
  OneOpFixture f;
  const uint32_t x = f.input({3});
  CHECK(f.plan_error("aten.mul.Tensor", {x, x, f.output({3}, GraphDtype::int32)}).code() ==
        ErrorCode::unsupported);
  CHECK(f.plan_error("aten.mul.Tensor", {x, x, f.output({3}, GraphDtype::boolean)}).code() ==
        ErrorCode::unsupported);
  CHECK(f.plan_error("aten.mul.Tensor", {x, f.input({4}), f.output({4})}).message() ==
        "Shapes [3] and [4] do not broadcast.");
  CHECK(f.plan_error("aten.mul.Tensor", {x, f.null(), f.output({3})}).code() ==
        ErrorCode::invalid_program);
}

}  // namespace
}  // namespace ptero::ops
