// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/reduce/extremum.wgsl.h"
#include "ops/reduce/sum.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;
using wgsl::ExtremumParams;
using wgsl::SumParams;

TEST_CASE("sum: neighbouring axes are one pass, in any order and sign") {
  OneOpFixture op;
  const uint32_t x = op.input({2, 3, 5, 7});
  for (const auto& dims : {std::vector<int64_t>{1, 2}, std::vector<int64_t>{-2, 1}}) {
    const auto plan = op.plan("aten.sum.dim_IntList", {x, op.integers(dims), op.value(true),
                                                       op.null(), op.output({2, 1, 1, 7})});
    REQUIRE(plan.ok());
    REQUIRE((*plan)->commands.size() == 1);
    const auto params = params_of<SumParams>(dispatch_at(**plan, 0));
    CHECK(params.rows == 14);
    CHECK(params.length == 15);
    CHECK(params.stride == 7);
  }
}

TEST_CASE("mean: axes apart are passes from the inside out; only the last divides") {
  OneOpFixture op;
  const auto plan = op.plan("aten.mean.dim", {op.input({2, 3, 5, 7}), op.integers({1, 3}),
                                              op.value(int64_t{0}), op.null(), op.output({2, 5})});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{2, 5});
  REQUIRE((*plan)->commands.size() == 2);
  REQUIRE((*plan)->scratch == std::vector<uint64_t>{2 * 3 * 5 * 4});
  const auto& inner = dispatch_at(**plan, 0);
  const auto& outer = dispatch_at(**plan, 1);
  CHECK(params_of<SumParams>(inner).rows == 30);
  CHECK(params_of<SumParams>(inner).length == 7);
  CHECK(params_of<SumParams>(inner).stride == 1);
  CHECK(params_of<SumParams>(outer).rows == 10);
  CHECK(params_of<SumParams>(outer).length == 3);
  CHECK(params_of<SumParams>(outer).stride == 5);
  CHECK(params_of<SumParams>(outer).scale == 1.0f / 21);
  CHECK(inner.bindings[1].is_scratch);
  CHECK(outer.bindings[0].is_scratch);
  CHECK(inner.kernel.prelude.find("p.scale") == std::string::npos);
  CHECK(outer.kernel.prelude.find("p.scale") != std::string::npos);
}

TEST_CASE(
    "sum: an axis of 1 between two is no obstacle; Null and [] mean all; no elements give 0") {
  OneOpFixture op;
  const uint32_t keep = op.value(false);
  const uint32_t x = op.input({2, 3, 1, 7});
  const std::pair<uint32_t, uint32_t> cases[] = {{op.null(), op.output({})},
                                                 {op.integers({}), op.output({})},
                                                 {op.integers({0, 1, 3, 2}), op.output({})},
                                                 {op.integers({0, 1, 3}), op.output({1})}};
  for (const auto& [dims, y] : cases) {
    const auto plan = op.plan("aten.sum.dim_IntList", {x, dims, keep, op.null(), y});
    REQUIRE(plan.ok());
    REQUIRE((*plan)->commands.size() == 1);
    CHECK(params_of<SumParams>(dispatch_at(**plan, 0)).length == 42);
    CHECK(params_of<SumParams>(dispatch_at(**plan, 0)).rows == 1);
  }
  const auto ones =
      op.plan("aten.sum.dim_IntList", {x, op.integers({2}), keep, op.null(), op.output({2, 3, 7})});
  REQUIRE(ones.ok());
  CHECK(params_of<SumParams>(dispatch_at(**ones, 0)).rows == 42);
  CHECK(params_of<SumParams>(dispatch_at(**ones, 0)).length == 1);
  const auto nothing = op.plan("aten.sum.dim_IntList", {op.input({4, 0, 3}), op.integers({1}), keep,
                                                        op.null(), op.output({4, 3})});
  REQUIRE(nothing.ok());
  CHECK(params_of<SumParams>(dispatch_at(**nothing, 0)).rows == 12);
  CHECK(params_of<SumParams>(dispatch_at(**nothing, 0)).length == 0);
}

TEST_CASE("reductions: integers stay integers, a mean of them is refused, so is an axis twice") {
  OneOpFixture op;
  const uint32_t x = op.input({3, 5}, GraphDtype::int32);
  const uint32_t y = op.output({3}, GraphDtype::int32);
  const uint32_t keep = op.value(false);
  const uint32_t dims = op.integers({1});
  const auto plan = op.plan("aten.sum.dim_IntList", {x, dims, keep, op.null(), y});
  REQUIRE(plan.ok());
  CHECK(dispatch_at(**plan, 0).kernel.prelude.find("alias Sum = i32;") != std::string::npos);
  CHECK(op.plan_error("aten.mean.dim", {x, dims, keep, op.null(), y}).code() ==
        ErrorCode::unsupported);
  CHECK(op.plan_error("aten.sum.dim_IntList", {x, op.integers({1, -1}), keep, op.null(), y})
            .message() == "Axis (-1) is reduced twice.");
  CHECK(
      op.plan_error("aten.sum.dim_IntList", {x, op.integers({2}), keep, op.null(), y}).message() ==
      "Axis (2) lies outside a tensor of rank 2.");
}

TEST_CASE("argmax and argmin: one axis or all, int32 positions") {
  OneOpFixture op;
  const uint32_t x = op.input({2, 3, 7});
  const uint32_t keep = op.value(true);
  for (const char* name : {"aten.argmax.default", "aten.argmin.default"}) {
    const auto plan =
        op.plan(name, {x, op.value(int64_t{1}), keep, op.output({2, 1, 7}, GraphDtype::int32)});
    REQUIRE(plan.ok());
    const auto& dispatch = dispatch_at(**plan, 0);
    const auto params = params_of<ExtremumParams>(dispatch);
    CHECK(params.rows == 14);
    CHECK(params.length == 3);
    CHECK(params.stride == 7);
    CHECK(params.flip == (std::string_view(name) == "aten.argmin.default" ? 0xffffffffu : 0u));
    CHECK(*gpu::override_value(dispatch.kernel, "position") == 1);
  }
  const auto all = op.plan("aten.argmax.default",
                           {x, op.null(), op.value(false), op.output({}, GraphDtype::int32)});
  REQUIRE(all.ok());
  CHECK(params_of<ExtremumParams>(dispatch_at(**all, 0)).length == 42);
  CHECK(op.plan_error("aten.argmax.default", {x, op.value(int64_t{1}), keep, op.output({2, 1, 7})})
            .code() == ErrorCode::invalid_program);
}

TEST_CASE("amax and amin: several axes; of no elements there is none") {
  OneOpFixture op;
  const uint32_t keep = op.value(true);
  const auto plan = op.plan("aten.amax.default", {op.input({2, 3, 5, 7}), op.integers({0, 2}), keep,
                                                  op.output({1, 3, 1, 7})});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 2);
  CHECK(params_of<ExtremumParams>(dispatch_at(**plan, 0)).stride == 7);
  CHECK(params_of<ExtremumParams>(dispatch_at(**plan, 1)).stride == 21);
  CHECK(*gpu::override_value(dispatch_at(**plan, 1).kernel, "position") == 0);
  const uint32_t empty = op.input({4, 0});
  CHECK(op.plan_error("aten.amin.default", {empty, op.integers({1}), keep, op.output({4, 1})})
            .code() == ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace ptero::ops
