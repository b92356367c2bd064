// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/quant_embedding/q4_embedding.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;
using wgsl::Q4EmbeddingParams;

constexpr const char* kName = "et_vk.embedding_q4gsw.default";

TEST_CASE("embedding_q4gsw: live indices give the shape; both orders of a byte") {
  for (const bool low_first : {true, false}) {
    OneOpFixture op;
    const uint32_t weight = op.tensor({512, 32}, GraphDtype::uint8);
    const uint32_t scales = op.tensor({512, 2});
    const uint32_t indices = op.input({1, 63}, GraphDtype::int32);
    const uint32_t y = op.output({1, 63, 64});
    const auto plan =
        op.plan(kName, {weight, scales, op.value(int64_t{32}), indices, op.value(low_first), y},
                {Shape{1, 7}});
    REQUIRE(plan.ok());
    CHECK((*plan)->output_shapes[0] == Shape{1, 7, 64});
    const auto& dispatch = dispatch_at(**plan, 0);
    const auto params = params_of<Q4EmbeddingParams>(dispatch);
    CHECK(params.n == 448);
    CHECK(params.width == 64);
    CHECK(params.w_row == 32);
    CHECK(params.group == 32);
    CHECK(params.s_row == 2);
    CHECK(params.length == 512);
    CHECK(params.rows == 512);
    CHECK(gpu::override_value(dispatch.kernel, "swapped").value() == (low_first ? 0 : 1));
  }
}

TEST_CASE("embedding_q4gsw: a table beyond a binding is looked up in blocks of rows") {
  OneOpFixture op;
  op.device.limits.max_storage_binding_size = 4 << 20;
  const uint32_t weight = op.tensor({128256, 1024}, GraphDtype::uint8);
  const uint32_t scales = op.tensor({128256, 64});
  const uint32_t indices = op.input({1, 3}, GraphDtype::int32);
  const uint32_t y = op.output({1, 3, 2048});
  const auto plan =
      op.plan(kName, {weight, scales, op.value(int64_t{32}), indices, op.value(true), y});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->dispatches() == 32);
  const auto& last = dispatch_at(**plan, 31);
  const auto params = params_of<Q4EmbeddingParams>(last);
  CHECK(params.first == 31 * 4096);
  CHECK(params.rows == 128256 - 31 * 4096);
  CHECK(params.length == 128256);
  CHECK(last.bindings[0].offset == uint64_t{31} * 4096 * 1024);
  CHECK(last.bindings[1].offset == 31 * 4096 * 256);
}

TEST_CASE("embedding_q4gsw: what does not fit together is refused") {
  OneOpFixture op;
  const uint32_t weight = op.tensor({9, 32}, GraphDtype::uint8);
  const uint32_t scales = op.tensor({9, 2});
  const uint32_t size = op.value(int64_t{32});
  const uint32_t indices = op.input({5}, GraphDtype::int32);
  const uint32_t order = op.value(true);
  const uint32_t y = op.output({5, 64});
  const auto message = [&](std::vector<uint32_t> args) {
    return op.plan_error(kName, std::move(args)).message();
  };
  CHECK(message({weight, scales, size, indices, order, op.output({5, 66})}) ==
        "A row of the packed weights (32 bytes) holds fewer elements than y (66).");
  CHECK(message({weight, scales, op.value(int64_t{16}), indices, order, y}) ==
        "Number of scales (2) in a row is below that of its groups (4).");
  CHECK(message({weight, op.tensor({8, 2}), size, indices, order, y}).find("no table") !=
        std::string::npos);
  CHECK(message({weight, scales, op.value(int64_t{-1}), indices, order, y}) ==
        "Group size (-1) is below 1.");
  CHECK(message({weight, scales, size, op.input({5}), order, y}).find("int32") !=
        std::string::npos);
  CHECK(message({weight, scales, size, indices, order, op.output({1, 5, 64})}) ==
        "Rank (3) of an embedding of [5] is not one above.");
  CHECK(message({op.tensor({0, 32}, GraphDtype::uint8), op.tensor({0, 2}), size, indices, order, y})
            .find("nothing to index") != std::string::npos);
}

}  // namespace
}  // namespace ptero::ops
