// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/common/pointwise_broadcast.wgsl.h"
#include "ops/common/pointwise_unary.wgsl.h"
#include "ops/compare/where.wgsl.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;

// Which int32 a comparison with a scalar accepts, as the kernel is told.
std::pair<int32_t, int32_t> accepted(const std::string& relation, double number) {
  OneOpFixture f;
  const auto plan = f.plan(
      "aten." + relation + ".Scalar",
      {f.input({4}, GraphDtype::int32), f.value(number), f.output({4}, GraphDtype::boolean)});
  REQUIRE(plan.ok());
  const auto params = params_of<wgsl::PointwiseUnaryParams>(dispatch_at(**plan, 0));
  return {static_cast<int32_t>(params.s[0]), static_cast<int32_t>(params.s[1])};
}

TEST_CASE("compare: an integer against any number is exact") {
  constexpr int32_t kLow = std::numeric_limits<int32_t>::min();
  constexpr int32_t kHigh = std::numeric_limits<int32_t>::max();
  constexpr std::pair<int32_t, int32_t> kNone = {1, 0};
  CHECK(accepted("lt", 16777217) == std::pair{kLow, 16777216});
  CHECK(accepted("lt", 2.5) == std::pair{kLow, 2});
  CHECK(accepted("le", -2.5) == std::pair{kLow, -3});
  CHECK(accepted("gt", -2.5) == std::pair{-2, kHigh});
  CHECK(accepted("gt", 2) == std::pair{3, kHigh});
  CHECK(accepted("ge", 2.5) == std::pair{3, kHigh});
  CHECK(accepted("eq", 7) == std::pair{7, 7});
  CHECK(accepted("ne", 7) == std::pair{7, 7});
  for (const auto& [low, high] : {accepted("eq", 2.5), accepted("ne", 2.5)}) {
    CHECK(low > high);
  }
  CHECK(accepted("lt", 1e12) == std::pair{kLow, kHigh});
  CHECK(accepted("le", std::numeric_limits<double>::infinity()) == std::pair{kLow, kHigh});
  CHECK(accepted("ge", -1e12) == std::pair{kLow, kHigh});
  CHECK(accepted("eq", 1e12) == kNone);
  CHECK(accepted("ne", -1e12) == kNone);
  CHECK(accepted("gt", 1e12) == kNone);
  CHECK(accepted("gt", kHigh) == kNone);
  CHECK(accepted("lt", kLow) == kNone);
  CHECK(accepted("lt", -1e12) == kNone);
  CHECK(accepted("eq", 1e12) == kNone);
  CHECK(accepted("eq", std::numeric_limits<double>::quiet_NaN()) == kNone);
}

TEST_CASE("compare: tensors broadcast, and the result must be bool") {
  OneOpFixture f;
  const uint32_t a = f.input({3, 5});
  const uint32_t b = f.input({3, 1});
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    const auto plan = f.plan("aten." + std::string(name) + ".Tensor",
                             {a, b, f.tensor({3, 5}, GraphDtype::boolean)});
    REQUIRE(plan.ok());
    CHECK(params_of<wgsl::PointwiseBroadcastParams>(dispatch_at(**plan, 0)).n == 15);
  }
  CHECK(f.plan_error("aten.eq.Tensor", {a, b, f.output({3, 5})}).code() == ErrorCode::unsupported);
}

TEST_CASE("bitwise: logic of bools, all bits of integers, nothing of floats") {
  OneOpFixture f;
  const auto body = [&](const char* name, GraphDtype dtype) {
    const uint32_t x = f.tensor({6}, dtype);
    const auto plan = f.plan(name, {x, x, f.tensor({6}, dtype)});
    REQUIRE(plan.ok());
    return dispatch_at(**plan, 0).kernel.prelude;
  };
  CHECK(body("aten.bitwise_and.Tensor", GraphDtype::boolean).find("(a & b) != 0") !=
        std::string::npos);
  CHECK(body("aten.bitwise_or.Tensor", GraphDtype::int32).find("(a | b);") != std::string::npos);
  const uint32_t floats = f.tensor({6});
  CHECK_FALSE(f.plan("aten.bitwise_not.default", {floats, floats}).ok());
}

TEST_CASE("where: three operands broadcast, of any element size") {
  OneOpFixture f;
  const uint32_t condition = f.input({3, 1}, GraphDtype::boolean);
  for (const auto& [dtype, lanes] :
       {std::pair{GraphDtype::float32, 1.0}, std::pair{GraphDtype::float16, 2.0},
        std::pair{GraphDtype::boolean, 4.0}}) {
    const auto plan = f.plan("aten.where.self", {condition, f.tensor({1, 5}, dtype),
                                                 f.tensor({}, dtype), f.tensor({3, 5}, dtype)});
    REQUIRE(plan.ok());
    const auto& dispatch = dispatch_at(**plan, 0);
    CHECK(dispatch.kernel.overrides[0].value == lanes);
    const auto params = params_of<wgsl::WhereParams>(dispatch);
    CHECK(params.n == 15);
    CHECK(params.c_strides[0] == std::array<uint32_t, 4>{0, 1, 0, 0});
    CHECK(params.a_strides[0] == std::array<uint32_t, 4>{1, 0, 0, 0});
    CHECK(params.b_strides[0] == std::array<uint32_t, 4>{0, 0, 0, 0});
  }
  const uint32_t x = f.tensor({3, 5});
  CHECK_FALSE(f.plan("aten.where.self", {x, x, x, f.tensor({3, 5})}).ok());
  CHECK_FALSE(f.plan("aten.where.self",
                     {condition, x, f.tensor({3, 5}, GraphDtype::int32), f.tensor({3, 5})})
                  .ok());
}

}  // namespace
}  // namespace ptero::ops
