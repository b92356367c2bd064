// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/gather/gather.wgsl.h"
#include "ops/gather/take_rows.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;
using wgsl::GatherParams;
using wgsl::TakeRowsParams;

TEST_CASE("embedding: indices of any rank, live") {
  OneOpFixture op;
  const uint32_t table = op.tensor({101, 12});
  const uint32_t indices = op.input({2, 7}, GraphDtype::int32);
  const uint32_t y = op.output({2, 7, 12});
  const auto plan = op.plan("aten.embedding.default", {table, indices, y}, {Shape{2, 3}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{2, 3, 12});
  const auto params = params_of<TakeRowsParams>(dispatch_at(**plan, 0));
  CHECK(params.n == 72);
  CHECK(params.inner == 12);
  CHECK(params.count == 6);
  CHECK(params.length == 101);
  CHECK(params.rows == 101);
  CHECK(params.wrap == 0);
}

TEST_CASE("embedding: a table larger than a binding is read in blocks of rows") {
  OneOpFixture op;
  op.device.limits.max_storage_binding_size = 65536;
  const uint32_t table = op.tensor({17000, 2});
  const uint32_t indices = op.input({4}, GraphDtype::int32);
  const auto plan =
      op.plan("aten.embedding.default", {table, indices, op.null(), op.output({4, 2})});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 3);
  uint32_t next = 0;
  for (size_t i = 0; i < 3; ++i) {
    const auto& dispatch = dispatch_at(**plan, i);
    const auto params = params_of<TakeRowsParams>(dispatch);
    CHECK(params.first == next);
    CHECK(params.length == 17000);
    CHECK(dispatch.bindings[0].offset == next * 8);
    CHECK(dispatch.bindings[0].size == params.rows * 8);
    next += params.rows;
  }
  CHECK(next == 17000);
}

TEST_CASE("index_select and index: shapes, wrapping, refusals") {
  OneOpFixture op;
  const uint32_t x = op.input({3, 5, 7});
  const uint32_t indices = op.input({4}, GraphDtype::int32);
  const auto select = op.plan("aten.index_select.default",
                              {x, op.value(int64_t{-2}), indices, op.output({3, 4, 7})});
  REQUIRE(select.ok());
  const auto params = params_of<TakeRowsParams>(dispatch_at(**select, 0));
  CHECK(params.inner == 7);
  CHECK(params.length == 5);
  CHECK(params.count == 4);
  CHECK(params.wrap == 0);

  const uint32_t two = op.input({2, 2}, GraphDtype::int32);
  const auto index = op.plan("aten.index.Tensor", {x, op.list({two}), op.output({2, 2, 5, 7})});
  REQUIRE(index.ok());
  CHECK((*index)->output_shapes.back() == Shape{2, 2, 5, 7});
  CHECK(params_of<TakeRowsParams>(dispatch_at(**index, 0)).wrap == 1);
  CHECK(params_of<TakeRowsParams>(dispatch_at(**index, 0)).inner == 35);

  const uint32_t y = op.output({4, 7});
  CHECK(op.plan_error("aten.index.Tensor", {x, op.list({two, two}), y}).code() ==
        ErrorCode::unsupported);
  CHECK(op.plan_error("aten.index_select.default", {x, op.value(int64_t{3}), indices, y}).code() ==
        ErrorCode::invalid_program);
  const uint32_t floats = op.input({4});
  CHECK(op.plan_error("aten.embedding.default", {op.input({9, 7}), floats, y}).code() ==
        ErrorCode::unsupported);
  CHECK(op.plan_error("aten.embedding.default", {op.input({0, 7}), indices, y}).code() ==
        ErrorCode::invalid_argument);
}

TEST_CASE("gather: the index gives the shape, and fits across") {
  OneOpFixture op;
  const uint32_t x = op.input({3, 5, 7});
  const uint32_t index = op.input({2, 9, 4}, GraphDtype::int32);
  const uint32_t y = op.output({2, 9, 4});
  const auto plan =
      op.plan("aten.gather.default", {x, op.value(int64_t{1}), index, op.value(false), y});
  REQUIRE(plan.ok());
  const auto params = params_of<GatherParams>(dispatch_at(**plan, 0));
  CHECK(params.n == 72);
  CHECK(params.rank == 3);
  CHECK(params.axis == 1);
  CHECK(params.length == 5);
  CHECK(params.dims[0] == std::array<uint32_t, 4>{4, 9, 2, 0});
  CHECK(params.x_strides[0] == std::array<uint32_t, 4>{1, 7, 35, 0});
  CHECK(op.plan_error("aten.gather.default", {x, op.value(int64_t{0}), index, y}).message() ==
        "Dimension 1 (9) of the index exceeds that of the input (5).");
  const uint32_t flat = op.input({4}, GraphDtype::int32);
  CHECK(op.plan_error("aten.gather.default", {x, op.value(int64_t{0}), flat, y}).message() ==
        "Rank (1) of the index differs from that of the input (3).");
}

}  // namespace
}  // namespace ptero::ops
