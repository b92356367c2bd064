// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/matmul/matmul.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Plan;
using graph::Shape;
using pte::GraphDtype;
using wgsl::MatmulParams;

TEST_CASE("linear: rows of any rank, live shapes, no addend bound as one") {
  OneOpFixture op;
  const uint32_t x = op.input({2, 3, 67});
  const uint32_t w = op.input({33, 67});
  const uint32_t y = op.output({2, 3, 33});
  const auto plan = op.plan("aten.linear.default", {x, w, op.null(), y});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{2, 3, 33});
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<MatmulParams>(dispatch);
  CHECK(params.m == 6);
  CHECK(params.n == 33);
  CHECK(params.k == 67);
  CHECK(params.flags == 0);
  CHECK(params.alpha == 1);
  CHECK(dispatch.grid == gpu::Grid{2, 1, 1});  // tiles of 8 by 32

  const auto live = op.plan("aten.linear.default", {x, w, op.null(), y}, {Shape{2, 1, 67}});
  REQUIRE(live.ok());
  CHECK((*live)->output_shapes[0] == Shape{2, 1, 33});
  CHECK(params_of<MatmulParams>(dispatch_at(**live, 0)).m == 2);
}

TEST_CASE("linear: a weight larger than a binding is taken in blocks of its rows") {
  OneOpFixture op;
  op.device.limits.max_storage_binding_size = 65536;
  const uint32_t x = op.input({5, 96});
  const uint32_t w = op.input({1000, 96});  // 384 bytes a row: pairs of rows are aligned
  const uint32_t bias = op.input({1000});
  const auto plan = op.plan("aten.linear.default", {x, w, bias, op.output({5, 1000})});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 6);
  uint64_t next = 0;
  for (size_t i = 0; i < 6; ++i) {
    const auto& dispatch = dispatch_at(**plan, i);
    const auto params = params_of<MatmulParams>(dispatch);
    CHECK(params.y_first == next);
    CHECK(params.y_stride == 1000);
    CHECK(params.flags == 1);
    CHECK(params.bias_m == 0);
    CHECK(params.bias_n == 1);
    CHECK(dispatch.bindings[1].offset == next * 384);
    CHECK(dispatch.bindings[1].offset % 256 == 0);
    CHECK(dispatch.bindings[1].size == params.n * 384);
    CHECK(dispatch.bindings[1].size <= 65536);
    next += params.n;
  }
  CHECK(next == 1000);
}

TEST_CASE("linear: activations larger than a binding are taken in blocks of rows") {
  OneOpFixture op;
  op.device.limits.max_storage_binding_size = 65536;
  const uint32_t x = op.input({300, 64});
  const auto plan =
      op.plan("aten.linear.default", {x, op.input({100, 64}), op.null(), op.output({300, 100})});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 2);  // 400 bytes a row of y, 16 at a time: at most 160
  const auto& last = dispatch_at(**plan, 1);
  CHECK(params_of<MatmulParams>(last).m == 140);
  CHECK(last.bindings[0].offset == 160 * 256);
  CHECK(last.bindings[3].offset == 160 * 400);
}

TEST_CASE("linear: says when rows cannot be aligned in a binding") {
  OneOpFixture op;
  op.device.limits.max_storage_binding_size = 65536;
  const uint32_t x = op.input({1, 4099});
  const Error error = op.plan_error("aten.linear.default",
                                    {x, op.input({50, 4099}), op.null(), op.output({1, 50})});
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(error.message().find("16396 bytes each, 64 at a time") != std::string::npos);
}

TEST_CASE("mm: a large right side is summed over blocks of k") {
  OneOpFixture op;
  op.device.limits.max_storage_binding_size = 65536;
  const uint32_t a = op.input({4, 300});
  const uint32_t b = op.input({300, 64});
  const auto plan = op.plan("aten.mm.default", {a, b, op.output({4, 64})});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 2);
  const auto first = params_of<MatmulParams>(dispatch_at(**plan, 0));
  const auto second = params_of<MatmulParams>(dispatch_at(**plan, 1));
  CHECK(first.k == 256);
  CHECK(first.flags == 0);
  CHECK(second.k == 44);
  CHECK(second.a_first == 256);
  CHECK(second.a_stride == 300);
  CHECK(second.flags == 2);  // adds to what is there
  CHECK(dispatch_at(**plan, 1).bindings[1].offset == 65536);
}

TEST_CASE("addmm: alpha, beta, and an addend of either rank; beta 0 leaves it out") {
  for (const bool matrix : {false, true}) {
    for (const double beta : {0.5, 0.0}) {
      OneOpFixture op;
      const uint32_t self = matrix ? op.input({50, 9}) : op.input({9});
      const uint32_t a = op.input({50, 7});
      const uint32_t b = op.input({7, 9});
      const auto plan = op.plan("aten.addmm.default", {self, a, b, op.value(beta),
                                                       op.value(int64_t{2}), op.output({50, 9})});
      REQUIRE(plan.ok());
      const auto params = params_of<MatmulParams>(dispatch_at(**plan, 0));
      CHECK(params.alpha == 2);
      CHECK(params.flags == (beta == 0 ? 0 : 1));
      if (beta != 0) {
        CHECK(params.beta == 0.5f);
        CHECK(params.bias_m == (matrix ? 9 : 0));
        CHECK(params.bias_n == 1);
      }
    }
  }
}

TEST_CASE("bmm: batches share a grid, and are split over bindings") {
  OneOpFixture op;
  const uint32_t a = op.input({4, 40, 16});
  const uint32_t b = op.input({4, 16, 70});
  const uint32_t y = op.output({4, 40, 70});
  const auto plan = op.plan("aten.bmm.default", {a, b, y});
  REQUIRE(plan.ok());
  CHECK(dispatch_at(**plan, 0).grid == gpu::Grid{4 * 2 * 3, 1, 1});
  op.device.limits.max_storage_binding_size = 24000;  // two of y's matrices
  op.device.limits.min_storage_offset_alignment = 64;
  const auto split = op.plan("aten.bmm.default", {a, b, y});
  REQUIRE(split.ok());
  REQUIRE((*split)->commands.size() == 2);
  CHECK(params_of<MatmulParams>(dispatch_at(**split, 1)).batches == 2);
  CHECK(dispatch_at(**split, 1).bindings[3].offset == 2 * 40 * 70 * 4);
}

TEST_CASE("matmul: grids fold, empty sums write and empty results do not run") {
  OneOpFixture op;
  op.device.limits.max_workgroups_per_dimension = 10;
  const auto plan = op.plan("aten.mm.default",
                            {op.input({1, 4}), op.input({4, 32 * 25}), op.output({1, 32 * 25})});
  REQUIRE(plan.ok());
  CHECK(dispatch_at(**plan, 0).grid == gpu::Grid{9, 3, 1});

  OneOpFixture sum_of_nothing;
  const auto zeros = sum_of_nothing.plan(
      "aten.mm.default",
      {sum_of_nothing.input({3, 0}), sum_of_nothing.input({0, 5}), sum_of_nothing.output({3, 5})});
  REQUIRE(zeros.ok());
  CHECK(params_of<MatmulParams>(dispatch_at(**zeros, 0)).k == 0);

  OneOpFixture empty;
  const auto none = empty.plan("aten.mm.default",
                               {empty.input({0, 4}), empty.input({4, 5}), empty.output({0, 5})});
  REQUIRE(none.ok());
  CHECK((*none)->commands.empty());
}

TEST_CASE("matmul: wrong arguments are refused") {
  OneOpFixture op;
  const uint32_t a = op.input({3, 4});
  const uint32_t b = op.input({5, 6});
  const uint32_t y = op.output({3, 6});
  CHECK(op.plan_error("aten.mm.default", {a, b, y}).message() ==
        "Shapes [3, 4] and [5, 6] cannot be multiplied.");
  CHECK(op.plan_error("aten.linear.default", {a, b, op.null(), y}).code() ==
        ErrorCode::invalid_program);
  CHECK(op.plan_error("aten.bmm.default", {a, b, y}).message() ==
        "Rank (2) of operand [3, 4] is not 3.");
  const uint32_t ints = op.input({3, 4}, GraphDtype::int32);
  const uint32_t more = op.input({4, 6}, GraphDtype::int32);
  CHECK(
      op.plan_error("aten.mm.default", {ints, more, op.output({3, 6}, GraphDtype::int32)}).code() ==
      ErrorCode::unsupported);
  const uint32_t self = op.input({5});
  CHECK(op.plan_error("aten.addmm.default",
                      {self, a, op.input({4, 6}), op.value(1.0), op.value(1.0), y})
            .message() == "Shape [5] of the addend does not broadcast to the product's [3, 6].");
}

}  // namespace
}  // namespace ptero::ops
