// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/softmax/softmax.wgsl.h"

namespace ptero::ops {
namespace {

TEST_CASE("softmax: lines along any axis, counted from either end") {
  OneOpFixture op;
  const uint32_t x = op.input({2, 3, 5, 7});
  const uint32_t y = op.output({2, 3, 5, 7});
  const uint32_t flag = op.value(false);
  constexpr uint32_t kStrides[] = {105, 35, 7, 1};
  constexpr uint32_t kLengths[] = {2, 3, 5, 7};
  for (int64_t dim = -4; dim < 4; ++dim) {
    for (const char* name : {"aten._softmax.default", "aten._log_softmax.default"}) {
      const auto plan = op.plan(name, {x, op.value(dim), flag, y});
      REQUIRE(plan.ok());
      const auto& dispatch = dispatch_at(**plan, 0);
      const auto params = params_of<wgsl::SoftmaxParams>(dispatch);
      const size_t axis = static_cast<size_t>(dim < 0 ? dim + 4 : dim);
      CHECK(params.length == kLengths[axis]);
      CHECK(params.stride == kStrides[axis]);
      CHECK(params.rows == 210 / kLengths[axis]);
      CHECK(*gpu::override_value(dispatch.kernel, "logarithm") ==
            (std::string_view(name) == "aten._log_softmax.default" ? 1 : 0));
    }
  }
  CHECK(op.plan_error("aten._softmax.default", {x, op.value(int64_t{4}), flag, y}).message() ==
        "Axis (4) lies outside a tensor of rank 4.");
}

TEST_CASE("softmax: a scalar, no elements, integers") {
  OneOpFixture op;
  const uint32_t dim = op.value(int64_t{0});
  const uint32_t flag = op.value(false);
  const auto scalar = op.plan("aten._softmax.default", {op.input({}), dim, flag, op.output({})});
  REQUIRE(scalar.ok());
  CHECK(params_of<wgsl::SoftmaxParams>(dispatch_at(**scalar, 0)).length == 1);
  const auto none =
      op.plan("aten._softmax.default", {op.input({0, 3}), dim, flag, op.output({0, 3})});
  REQUIRE(none.ok());
  CHECK((*none)->commands.empty());
  CHECK(op.plan_error("aten._softmax.default", {op.input({3}, pte::GraphDtype::int32), dim, flag,
                                                op.output({3}, pte::GraphDtype::int32)})
            .code() == ErrorCode::unsupported);
}

}  // namespace
}  // namespace ptero::ops
