// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/common/pointwise_unary.wgsl.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;
using wgsl::PointwiseUnaryParams;

std::array<uint32_t, 2> scalars_of(const graph::Plan& plan) {
  return params_of<PointwiseUnaryParams>(dispatch_at(plan, 0)).s;
}

TEST_CASE("unary: every operator plans in float32 and float16 at the live shape") {
  for (const char* name : {"abs", "exp", "sqrt", "rsqrt", "sin", "cos", "tanh", "round", "neg",
                           "hardswish", "relu", "sigmoid", "leaky_relu"}) {
    for (const GraphDtype dtype : {GraphDtype::float32, GraphDtype::float16}) {
      CAPTURE(name);
      OneOpFixture f;
      const auto plan = f.plan("aten." + std::string(name) + ".default",
                               {f.input({4, 6}, dtype), f.output({4, 6}, dtype)}, {{3, 5}});
      REQUIRE(plan.ok());
      CHECK((*plan)->output_shapes[0] == graph::Shape{3, 5});
      CHECK(params_of<PointwiseUnaryParams>(dispatch_at(**plan, 0)).n == 15);
    }
  }
}

TEST_CASE("unary: integers where PyTorch has them") {
  for (const char* name : {"abs", "neg", "relu", "round"}) {
    OneOpFixture f;
    CHECK(f.plan("aten." + std::string(name) + ".default",
                 {f.input({4}, GraphDtype::int32), f.output({4}, GraphDtype::int32)})
              .ok());
  }
  OneOpFixture f;
  const uint32_t x = f.input({4}, GraphDtype::int32);
  CHECK(f.plan("aten.exp.default", {x, f.output({4})}).ok());
  CHECK(f.plan_error("aten.exp.default", {x, f.output({4}, GraphDtype::int32)}).message() ==
        "Element type (int32) of the result is not float.");
}

TEST_CASE("clamp: a bound that is missing is none, and integer bounds are integers") {
  OneOpFixture f;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const uint32_t x = f.input({4});
  const uint32_t y = f.output({4});
  const auto upper = f.plan("aten.clamp.default", {x, f.null(), f.value(int64_t{2}), y});
  REQUIRE(upper.ok());
  CHECK(scalars_of(**upper) ==
        std::array{std::bit_cast<uint32_t>(-kInfinity), std::bit_cast<uint32_t>(2.0f)});
  const auto lower = f.plan("aten.clamp.default", {x, f.value(0.5), f.null(), y});
  REQUIRE(lower.ok());
  CHECK(scalars_of(**lower) ==
        std::array{std::bit_cast<uint32_t>(0.5f), std::bit_cast<uint32_t>(kInfinity)});

  const uint32_t i = f.tensor({4}, GraphDtype::int32);
  const uint32_t to = f.tensor({4}, GraphDtype::int32);
  const auto ints = f.plan("aten.clamp.default", {i, f.null(), f.value(7.0), to});
  REQUIRE(ints.ok());
  CHECK(scalars_of(**ints) == std::array{0x80000000u, 7u});
  CHECK_FALSE(f.plan("aten.clamp.default", {i, f.value(0.5), f.null(), to}).ok());
  CHECK_FALSE(f.plan("aten.clamp.default", {x, f.value(std::string("a")), f.null(), y}).ok());
}

TEST_CASE("unary: slope, exponent and form of GELU") {
  OneOpFixture f;
  const uint32_t x = f.input({4});
  const uint32_t y = f.output({4});
  const auto slope = f.plan("aten.leaky_relu.default", {x, y});
  REQUIRE(slope.ok());
  CHECK(scalars_of(**slope)[0] == std::bit_cast<uint32_t>(0.01f));
  const auto given = f.plan("aten.leaky_relu.default", {x, f.value(0.3), y});
  REQUIRE(given.ok());
  CHECK(scalars_of(**given)[0] == std::bit_cast<uint32_t>(0.3f));

  const auto general = f.plan("aten.pow.Tensor_Scalar", {x, f.value(1.7), y});
  REQUIRE(general.ok());
  CHECK(scalars_of(**general)[0] == std::bit_cast<uint32_t>(1.7f));
  CHECK(dispatch_at(**general, 0).kernel.prelude.find("power(a, s.x)") != std::string::npos);
  const auto square = f.plan("aten.pow.Tensor_Scalar", {x, f.value(int64_t{2}), y});
  REQUIRE(square.ok());
  CHECK(dispatch_at(**square, 0).kernel.prelude.find("a * a;") != std::string::npos);
  const uint32_t i = f.tensor({4}, GraphDtype::int32);
  CHECK_FALSE(
      f.plan("aten.pow.Tensor_Scalar", {i, f.value(int64_t{-1}), f.tensor({4}, GraphDtype::int32)})
          .ok());

  CHECK(f.plan("aten.gelu.default", {x, f.value(std::string("tanh")), y}).ok());
  CHECK(f.plan_error("aten.gelu.default", {x, f.value(std::string("erf")), y}).message() ==
        "Approximation (erf) is neither none nor tanh.");
}

}  // namespace
}  // namespace ptero::ops
