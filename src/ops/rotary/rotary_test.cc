// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/rotary/rotary.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;
using wgsl::RotaryParams;

double override_of(const graph::PlannedDispatch& dispatch, std::string_view name) {
  return *gpu::override_value(dispatch.kernel, name);
}

TEST_CASE("apply_rotary_emb: queries and keys in one dispatch, at live rows") {
  OneOpFixture op;
  const uint32_t q = op.input({1, 63, 8, 32});
  const uint32_t k = op.input({1, 63, 2, 32});
  const uint32_t cosines = op.input({63, 16});
  const uint32_t sines = op.input({63, 16});
  const uint32_t results = op.list({op.output({1, 63, 8, 32}), op.output({1, 63, 2, 32})});
  const auto plan = op.plan("et_vk.apply_rotary_emb.default", {q, k, cosines, sines, results},
                            {Shape{1, 3, 8, 32}, Shape{1, 3, 2, 32}, Shape{3, 16}, Shape{3, 16}});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 1);
  CHECK((*plan)->output_shapes[0] == Shape{1, 3, 8, 32});
  CHECK((*plan)->output_shapes[1] == Shape{1, 3, 2, 32});
  const auto& dispatch = dispatch_at(**plan, 0);
  CHECK(params_of<RotaryParams>(dispatch) == RotaryParams{.q_pairs = 384,
                                                          .k_pairs = 96,
                                                          .q_heads = 8,
                                                          .k_heads = 2,
                                                          .dim = 32,
                                                          .rotated = 32,
                                                          .rows = 3,
                                                          .table_rows = 3,
                                                          .table_row = 16,
                                                          .table_step = 1});
  CHECK(dispatch.grid == gpu::Grid{8, 1, 1});
  CHECK(override_of(dispatch, "halves") == 0);
  CHECK(override_of(dispatch, "positioned") == 0);

  const auto part = op.plan("et_vk.apply_rotary_emb.default",
                            {q, k, op.input({63, 12}), op.input({63, 12}), results});
  REQUIRE(part.ok());
  CHECK(params_of<RotaryParams>(dispatch_at(**part, 0)).rotated == 24);
  CHECK(op.plan_error("et_vk.apply_rotary_emb.default",
                      {q, k, op.input({63, 17}), op.input({63, 17}), results})
            .message() == "Number of pairs in the tables (17) exceeds those of a head (16).");
  CHECK(op.plan_error("et_vk.apply_rotary_emb.default",
                      {q, k, op.input({62, 16}), op.input({62, 16}), results})
            .message() == "Number of rows (63) exceeds those of the tables (62).");
  CHECK(op.plan_error("et_vk.apply_rotary_emb.default", {q, k, cosines, op.input({63, 8}), results})
            .code() == ErrorCode::invalid_program);
  CHECK(op.plan_error("et_vk.apply_rotary_emb.default",
                      {q, op.input({1, 62, 2, 32}), cosines, sines, results})
            .code() == ErrorCode::invalid_program);
}

TEST_CASE("apply_rotary_emb_hf: the whole table, from a slot on") {
  OneOpFixture op;
  const uint32_t q = op.input({1, 5, 8, 32});
  const uint32_t k = op.input({1, 5, 2, 32});
  const uint32_t table = op.tensor({128, 24});
  const uint32_t results = op.list({op.output({1, 5, 8, 32}), op.output({1, 5, 2, 32})});
  const uint32_t start = op.value(pte::SymInt{});
  op.graph.inputs.push_back(start);
  const auto plan =
      op.plan("et_vk.apply_rotary_emb_hf.default", {q, k, table, table, start, results});
  REQUIRE(plan.ok());
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<RotaryParams>(dispatch);
  CHECK(params.rotated == 24);
  CHECK(params.dim == 32);
  CHECK(params.table_rows == 128);
  CHECK(params.table_row == 24);
  CHECK(override_of(dispatch, "halves") == 1);
  CHECK(override_of(dispatch, "positioned") == 1);
  CHECK(dispatch.bindings[4].id != dispatch.bindings[0].id);  // the slots

  const auto at = [&](int64_t position) {
    return op.plan("et_vk.apply_rotary_emb_hf.default",
                   {q, k, table, table, op.value(position), results});
  };
  CHECK(at(123).ok());
  CHECK_FALSE(at(124).ok());
  CHECK_FALSE(at(-1).ok());
  const uint32_t odd = op.tensor({128, 23});
  CHECK(op.plan_error("et_vk.apply_rotary_emb_hf.default", {q, k, odd, odd, start, results})
            .message() ==
        "Number of elements to rotate (23) is odd, or does not fit into those of a head (32), "
        "which is even.");
}

TEST_CASE("apply_rotary_emb_interleaved: one tensor, cosines and sines in turn") {
  OneOpFixture op;
  const uint32_t x = op.input({2, 6, 16}, GraphDtype::float16);
  const uint32_t freqs = op.input({6, 16});
  const uint32_t y = op.output({2, 6, 16}, GraphDtype::float16);
  const auto plan = op.plan("et_vk.apply_rotary_emb_interleaved.default", {x, freqs, y},
                            {Shape{2, 4, 16}, Shape{4, 16}});
  REQUIRE(plan.ok());
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<RotaryParams>(dispatch);
  CHECK(params.q_pairs == 64);
  CHECK(params.k_pairs == 0);
  CHECK(params.rows == 4);
  CHECK(params.table_row == 16);
  CHECK(params.table_step == 2);
  CHECK(params.sin_from == 1);
  CHECK(dispatch.kernel.prelude == "alias T = f16;\nalias F = f32;\n");
  CHECK(dispatch.bindings[6].is_scratch);
  CHECK(op.plan_error("et_vk.apply_rotary_emb_interleaved.default", {x, op.input({5, 16}), y})
            .code() == ErrorCode::invalid_program);
}

}  // namespace
}  // namespace ptero::ops
