// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/pointwise.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/common/pointwise_binary.wgsl.h"
#include "ops/common/pointwise_broadcast.wgsl.h"
#include "ops/common/pointwise_unary.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using graph::TensorRef;
using pte::GraphDtype;
using wgsl::PointwiseBinaryParams;
using wgsl::PointwiseBroadcastParams;
using wgsl::PointwiseUnaryParams;

TensorRef shaped(Shape shape) {
  return {0, GraphDtype::float32, shape, false};
}

TEST_CASE("walk: what every operand walks as one is one dimension") {
  const TensorRef dense = shaped({2, 3, 4});
  const TensorRef row = shaped({4});
  const TensorRef middle = shaped({3, 1});
  const TensorRef one = shaped({1, 1});

  const Walk same = walk(dense.shape, {&dense, &dense});
  CHECK(same.rank == 1);
  CHECK(same.dims[0] == 24);
  CHECK(same.step(0) == 1);
  CHECK(walk(dense.shape, {&dense, &one}).rank == 1);
  CHECK(walk(dense.shape, {&dense, &one}).step(1) == 0);

  const Walk rows = walk(dense.shape, {&dense, &row});
  CHECK(rows.rank == 2);
  CHECK(rows.dims[0] == 4);
  CHECK(rows.dims[1] == 6);
  CHECK(rows.strides[0][1] == 4);
  CHECK(rows.strides[1][0] == 1);
  CHECK(rows.strides[1][1] == 0);

  const Walk inner = walk(dense.shape, {&dense, &middle});
  CHECK(inner.rank == 3);
  CHECK(inner.strides[1][0] == 0);
  CHECK(inner.strides[1][1] == 1);
  CHECK(inner.strides[1][2] == 0);
}

TEST_CASE("walk: ones vanish, and a single element is one dimension of one") {
  const TensorRef x = shaped({1, 5, 1, 7, 1});
  CHECK(walk(x.shape, {&x}).rank == 1);
  CHECK(walk(x.shape, {&x}).dims[0] == 35);
  const TensorRef scalar = shaped({});
  CHECK(walk(scalar.shape, {&scalar}).rank == 1);
  CHECK(walk(scalar.shape, {&scalar}).dims[0] == 1);
}

TEST_CASE("pointwise: one thread a word, whatever the element type of the result") {
  OneOpFixture f;
  const uint32_t x = f.input({259});
  const uint32_t number = f.value(1.5);
  SUBCASE("four bytes") {
    const auto plan = f.plan("aten.abs.default", {x, f.output({259})});
    REQUIRE(plan.ok());
    CHECK(dispatch_at(**plan, 0).grid == gpu::Grid{5, 1, 1});
    CHECK(params_of<PointwiseUnaryParams>(dispatch_at(**plan, 0)).n == 259);
  }
  SUBCASE("two bytes, without the feature for f16") {
    const auto plan = f.plan("aten._to_copy.default", {x, f.output({259}, GraphDtype::float16)});
    REQUIRE(plan.ok());
    CHECK(dispatch_at(**plan, 0).grid == gpu::Grid{3, 1, 1});
    CHECK(dispatch_at(**plan, 0).kernel.features.empty());
  }
  SUBCASE("one byte") {
    const auto plan = f.plan("aten.gt.Scalar", {x, number, f.output({259}, GraphDtype::boolean)});
    REQUIRE(plan.ok());
    CHECK(dispatch_at(**plan, 0).grid == gpu::Grid{2, 1, 1});
    CHECK(params_of<PointwiseUnaryParams>(dispatch_at(**plan, 0)).s[0] ==
          std::bit_cast<uint32_t>(1.5f));
  }
}

TEST_CASE("pointwise: dense operands and single elements need no indexing, others do") {
  OneOpFixture f;
  const uint32_t a = f.input({3, 5});
  SUBCASE("the same shape, written with another rank") {
    const auto plan = f.plan("aten.mul.Tensor", {a, f.input({1, 3, 5}), f.output({1, 3, 5})});
    REQUIRE(plan.ok());
    const auto params = params_of<PointwiseBinaryParams>(dispatch_at(**plan, 0));
    CHECK(params.a_step == 1);
    CHECK(params.b_step == 1);
  }
  SUBCASE("a single element") {
    const auto plan = f.plan("aten.mul.Tensor", {f.input({}), a, f.output({3, 5})});
    REQUIRE(plan.ok());
    CHECK(params_of<PointwiseBinaryParams>(dispatch_at(**plan, 0)).a_step == 0);
  }
  SUBCASE("a row") {
    const auto plan = f.plan("aten.mul.Tensor", {a, f.input({5}), f.output({3, 5})});
    REQUIRE(plan.ok());
    const auto params = params_of<PointwiseBroadcastParams>(dispatch_at(**plan, 0));
    CHECK(params.rank == 2);
    CHECK(params.dims[0] == std::array<uint32_t, 4>{5, 3, 0, 0});
    CHECK(params.b_strides[0] == std::array<uint32_t, 4>{1, 0, 0, 0});
  }
}

TEST_CASE("pointwise: grids fold past the limit of one dimension") {
  OneOpFixture f;
  const auto plan = f.plan("aten.abs.default", {f.input({4096, 4097}), f.output({4096, 4097})});
  REQUIRE(plan.ok());
  const gpu::Grid grid = dispatch_at(**plan, 0).grid;
  CHECK(grid.y == 5);
  CHECK(uint64_t{grid.x} * grid.y * 64 >= 4096u * 4097u);
}

TEST_CASE("pointwise: a tensor larger than a binding is dealt with in parts") {
  OneOpFixture f;
  f.device.limits.max_storage_binding_size = 1024;
  const uint32_t bools = f.output({601}, GraphDtype::boolean);
  const auto plan = f.plan("aten.gt.Tensor", {f.input({601}), f.input({1}), bools});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->dispatches() == 3);  // 256 floats are 1024 bytes, and 256 bools are an offset
  uint32_t elements = 0;
  for (size_t i = 0; i < 3; ++i) {
    const auto& dispatch = dispatch_at(**plan, i);
    elements += params_of<PointwiseBinaryParams>(dispatch).n;
    CHECK(dispatch.bindings[0].offset == 1024 * i);
    CHECK(dispatch.bindings[0].size == (i < 2 ? 1024 : 356));
    CHECK(dispatch.bindings[1].offset == 0);
    CHECK(dispatch.bindings[2].offset == 256 * i);
    CHECK(dispatch.bindings[2].size == (i < 2 ? 256 : 92));
  }
  CHECK(elements == 601);
}

TEST_CASE("pointwise: no elements, no dispatch") {
  OneOpFixture f;
  const auto plan = f.plan("aten.add.Tensor",
                           {f.input({0, 3}), f.input({3}), f.value(int64_t{1}), f.output({0, 3})});
  REQUIRE(plan.ok());
  CHECK((*plan)->dispatches() == 0);
}

TEST_CASE("float_bits: rounds to nearest, and beyond float32 to infinity") {
  const auto value = [](double x) { return std::bit_cast<float>(float_bits(x)); };
  CHECK(value(0.1) == 0.1f);
  CHECK(value(-1e300) == -std::numeric_limits<float>::infinity());
  CHECK(value(std::numeric_limits<double>::infinity()) == std::numeric_limits<float>::infinity());
  CHECK(value(0x1.fffffefp127) == std::numeric_limits<float>::max());
  CHECK(value(0x1.ffffffp127) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(value(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("saturated_int: whole numbers, kept within int32") {
  CHECK(*saturated_int(-7) == -7);
  CHECK(*saturated_int(1e12) == std::numeric_limits<int32_t>::max());
  CHECK(*saturated_int(-std::numeric_limits<double>::infinity()) ==
        std::numeric_limits<int32_t>::min());
  CHECK(saturated_int(0.5).error().code() == ErrorCode::unsupported);
  CHECK_FALSE(saturated_int(std::nan("")).ok());
}

}  // namespace
}  // namespace ptero::ops
