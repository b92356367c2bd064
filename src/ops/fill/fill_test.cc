// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/fill/fill.wgsl.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;

wgsl::FillParams filled(double number, GraphDtype dtype) {
  OneOpFixture f;
  const auto plan =
      f.plan("aten.full.default", {f.integers({3, 3}), f.value(number), f.output({3, 3}, dtype)});
  REQUIRE(plan.ok());
  return params_of<wgsl::FillParams>(dispatch_at(**plan, 0));
}

TEST_CASE("fill: whole words of the number in every type") {
  CHECK(filled(1, GraphDtype::float32).word == 0x3f800000);
  CHECK(filled(-std::numeric_limits<double>::infinity(), GraphDtype::float32).word == 0xff800000);
  CHECK(filled(-3.75, GraphDtype::int32).word == 0xfffffffd);
  CHECK(filled(2, GraphDtype::boolean).word == 0x01010101);
  CHECK(filled(-2, GraphDtype::int8).word == 0xfefefefe);
  CHECK(filled(200, GraphDtype::uint8).word == 0xc8c8c8c8);
  CHECK(filled(1, GraphDtype::float32).words == 9);
  CHECK(filled(1, GraphDtype::float16).words == 5);
  CHECK(filled(1, GraphDtype::boolean).words == 3);
}

TEST_CASE("fill: float16 rounds to nearest, ties to even") {
  const auto half = [](double x) { return filled(x, GraphDtype::float16).word & 0xffff; };
  CHECK(filled(1, GraphDtype::float16).word == 0x3c003c00);
  CHECK(half(-0.0) == 0x8000);
  CHECK(half(65504) == 0x7bff);
  CHECK(half(65519) == 0x7bff);
  CHECK(half(65520) == 0x7c00);
  CHECK(half(-1e300) == 0xfc00);
  CHECK(half(2049) == 0x6800);
  CHECK(half(2051) == 0x6802);
  CHECK(half(0x1p-24) == 0x0001);
  CHECK(half(0x1p-25) == 0x0000);
  CHECK(half(0x1.8p-24) == 0x0002);
  CHECK(half(0x1.ffcp-15) == 0x0400);
  CHECK(half(0.1) == 0x2e66);
  CHECK(half(std::nan("")) == 0x7e00);
}

TEST_CASE("fill: the shape is a list, another tensor's or a scalar's") {
  OneOpFixture f;
  const uint32_t like = f.input({4, 6});
  const uint32_t y = f.output({4, 6});
  const auto plan = f.plan("aten.full_like.default", {like, f.value(2.5), f.null(), y}, {{3, 5}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == graph::Shape{3, 5});
  CHECK(params_of<wgsl::FillParams>(dispatch_at(**plan, 0)).words == 15);
  const auto zeros = f.plan("aten.zeros_like.default", {like, y});
  REQUIRE(zeros.ok());
  CHECK(params_of<wgsl::FillParams>(dispatch_at(**zeros, 0)).word == 0);
  const auto ones = f.plan("aten.ones.default", {f.integers({2, 6}), y});
  REQUIRE(ones.ok());
  CHECK((*ones)->output_shapes[0] == graph::Shape{2, 6});
  const auto one =
      f.plan("aten.scalar_tensor.default", {f.value(true), f.tensor({}, GraphDtype::int32)});
  REQUIRE(one.ok());
  CHECK(params_of<wgsl::FillParams>(dispatch_at(**one, 0)).word == 1);
}

TEST_CASE("fill: a number that the type does not hold, and dimensions that are none, are errors") {
  OneOpFixture f;
  CHECK(f.plan_error("aten.full.default",
                     {f.integers({2}), f.value(3e9), f.tensor({2}, GraphDtype::int32)})
            .code() == ErrorCode::unsupported);
  CHECK(f.plan_error("aten.full.default",
                     {f.integers({2}), f.value(std::nan("")), f.tensor({2}, GraphDtype::int32)})
            .code() == ErrorCode::unsupported);
  CHECK(f.plan_error("aten.zeros.default", {f.integers({-1}), f.tensor({2})}).code() ==
        ErrorCode::invalid_program);
}

}  // namespace
}  // namespace ptero::ops
