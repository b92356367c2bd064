// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <doctest/doctest.h>

#include "ops/attention/attention_fixture.h"
#include "ops/attention/attention_merge.wgsl.h"
#include "ops/attention/attention_rows.wgsl.h"
#include "ops/attention/attention_split.wgsl.h"
#include "ops/attention/attention_tiles.wgsl.h"
#include "ops/attention/cache_append.wgsl.h"
#include "ops/attention/cache_update.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;

TEST_CASE("sdpa_with_kv_cache: the caches are written, then read in splits by a single token") {
  SdpaFixture op(63, 32, 8, 64, 2048);
  const Shape q{1, 1, 32, 64};
  const Shape kv{1, 1, 8, 64};
  const auto plan = op.plan_it({q, kv, kv});
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 3);
  CHECK((*plan)->output_shapes[0] == q);

  const auto& append = dispatch_at(**plan, 0);
  const auto rows = params_of<wgsl::CacheAppendParams>(append);
  CHECK(rows.n == 128);  // vec4s
  CHECK(rows.width == 128);
  CHECK(rows.rows == 1);
  CHECK(rows.capacity == 2048);
  CHECK(append.kernel.prelude == "alias T = vec4<f32>;\nalias C = vec4<f32>;\n");

  const auto& split = dispatch_at(**plan, 1);
  const auto params = params_of<wgsl::AttentionSplitParams>(split);
  CHECK(params.rows == 1);
  CHECK(params.heads == 8);
  CHECK(params.group == 4);
  CHECK(params.keys == 2048);
  CHECK(params.q_row == 512);
  CHECK(params.q_head == 16);
  CHECK(params.kv_row == 128);
  CHECK(params.kv_head == 16);
  CHECK(params.slot == rows.slot);
  CHECK(params.splits == 32);  // no more than there are tiles
  CHECK(params.scale == 0.125f);
  CHECK(split.grid == gpu::Grid{32, 8, 1});
  REQUIRE(split.live_grid);
  CHECK(split.live_grid->axis == 0);
  CHECK(split.live_grid->id == op.position);
  CHECK(split.live_grid->add == 1);
  CHECK(split.live_grid->divide == 64);
  CHECK(override_of(split, "causal") == 1);
  CHECK(override_of(split, "positioned") == 1);
  CHECK(override_of(split, "masked") == 0);
  CHECK(override_of(split, "parts") == 1);
  CHECK(split.kernel.prelude ==
        "alias T = f32;\nalias C = f32;\nalias Y = f32;\nconst kDim4 = 16u;\nconst kRows = 4u;\n");
  REQUIRE((*plan)->scratch.size() == 1);
  CHECK((*plan)->scratch[0] == 32 * 32 * 17 * 16);  // splits, queries, vec4s, bytes

  const auto& merge = dispatch_at(**plan, 2);
  CHECK(params_of<wgsl::AttentionMergeParams>(merge).splits == 32);
  CHECK(merge.grid == gpu::Grid{32, 1, 1});
  CHECK(merge.bindings[0].id == split.bindings[5].id);
}

TEST_CASE("sdpa_with_kv_cache: routes by device and shape") {
  const auto kernels = [](SdpaFixture& op, uint32_t rows) {
    const auto plan =
        op.plan_it({Shape{1, rows, 8, 64}, Shape{1, rows, 2, 64}, Shape{1, rows, 2, 64}});
    REQUIRE(plan.ok());
    std::string names;
    for (size_t i = 1; i < (*plan)->commands.size(); ++i) {
      names += std::string(dispatch_at(**plan, i).kernel.source->name) + " ";
    }
    return names;
  };
  SdpaFixture large(100, 8, 2, 64, 2048);
  CHECK(kernels(large, 1) == "attention_split attention_merge ");
  CHECK(kernels(large, 4) == "attention_split attention_merge ");
  CHECK(kernels(large, 5) == "attention_tiles ");
  CHECK(kernels(large, 100) == "attention_tiles ");
  SdpaFixture small(60, 8, 2, 64, 64);  // one tile: nothing to merge
  CHECK(kernels(small, 1) == "attention_split ");
  large.device.is_software = true;
  CHECK(kernels(large, 1) == "attention_rows ");
  CHECK(kernels(large, 100) == "attention_rows ");
}

TEST_CASE("sdpa_with_kv_cache: grids of rows and tiles, and heads too large for a split") {
  SdpaFixture op(100, 12, 4, 64, 2048);
  const auto tiles = op.plan_it();
  REQUIRE(tiles.ok());
  CHECK(dispatch_at(**tiles, 1).grid == gpu::Grid{4 * 10, 1, 1});  // 300 queries by 32
  op.device.is_software = true;
  const auto rows = op.plan_it();
  REQUIRE(rows.ok());
  CHECK(dispatch_at(**rows, 1).grid == gpu::Grid{4 * 38, 1, 1});
  CHECK(override_of(dispatch_at(**rows, 1), "wg_size") == 8);
  CHECK(params_of<wgsl::AttentionRowsParams>(dispatch_at(**rows, 1)).rows == 100);
  op.device.limits.max_workgroups_per_dimension = 100;
  const auto folded = op.plan_it();
  REQUIRE(folded.ok());
  CHECK(dispatch_at(**folded, 1).grid == gpu::Grid{76, 2, 1});

  SdpaFixture wide(1, 2, 2, 260, 2048);
  const auto plan = wide.plan_it();
  REQUIRE(plan.ok());
  CHECK(dispatch_at(**plan, 1).kernel.source == &wgsl::kAttentionTiles);
}

TEST_CASE("sdpa_with_kv_cache: caches have a type of their own") {
  SdpaFixture op(4, 4, 4, 8, 128, GraphDtype::float32, GraphDtype::float16);
  const auto plan = op.plan_it();
  REQUIRE(plan.ok());
  CHECK(dispatch_at(**plan, 0).kernel.prelude == "alias T = vec4<f32>;\nalias C = vec4<f16>;\n");
  const auto& split = dispatch_at(**plan, 1);
  CHECK(split.kernel.prelude.starts_with("alias T = f32;\nalias C = f16;\nalias Y = f32;\n"));
  CHECK(split.kernel.features.contains(gpu::Feature::shader_f16));
}

TEST_CASE("sdpa_with_kv_cache: what is refused") {
  SdpaFixture heads(4, 5, 2, 8, 16);
  CHECK(heads.error().message() ==
        "Queries of shape [1, 4, 5, 8] do not go with a cache of shape [1, 16, 2, 8]: heads "
        "divide, elements are equal.");
  SdpaFixture elements(4, 4, 2, 6, 16);
  CHECK(elements.error().code() == ErrorCode::unsupported);
  SdpaFixture rows(17, 4, 2, 8, 16);
  CHECK(rows.error().message() == "Number of rows (17) exceeds what the cache holds (16).");
  SdpaFixture type(4, 4, 2, 8, 16, GraphDtype::int32);
  CHECK(type.error().code() == ErrorCode::unsupported);
  SdpaFixture dropout(4, 4, 2, 8, 16);
  dropout.dropout = dropout.value(0.1);
  CHECK(dropout.error().message() == "Dropout (0.1) is not 0.");
  SdpaFixture batch(4, 4, 2, 8, 16);
  batch.q = batch.input({2, 4, 4, 8});
  CHECK(batch.error().message() == "Batch (2) of the queries is not 1.");
  SdpaFixture rank(4, 4, 2, 8, 16);
  rank.k_cache = rank.tensor({16, 16});
  CHECK(rank.error().code() == ErrorCode::invalid_program);
  SdpaFixture keys(4, 4, 2, 8, 16);
  keys.k = keys.input({1, 3, 2, 8});
  CHECK(keys.error().code() == ErrorCode::invalid_program);
  SdpaFixture pair(4, 4, 2, 8, 16);
  pair.v_cache = pair.tensor({1, 17, 2, 8});
  CHECK(pair.error().code() == ErrorCode::invalid_program);
  SdpaFixture binding(1, 4, 2, 8, 16);
  binding.device.limits.max_storage_binding_size = 512;
  CHECK(binding.error().message().find("(1024 bytes) exceeds a binding") != std::string::npos);
  SdpaFixture place(4, 4, 2, 8, 16);
  place.position = place.value(int64_t{13});
  CHECK_FALSE(place.plan_it().ok());
  place.position = place.value(int64_t{12});
  CHECK(place.plan_it().ok());
}

TEST_CASE("custom_sdpa: a mask says how many keys count") {
  OneOpFixture op;
  const uint32_t q = op.input({1, 40, 6, 8});
  const uint32_t k = op.input({1, 90, 2, 8});
  const uint32_t v = op.input({1, 90, 2, 8});
  const uint32_t start = op.value(int64_t{5});
  const uint32_t zero = op.value(int64_t{0});
  const uint32_t no = op.value(false);
  const uint32_t y = op.output({1, 40, 6, 8});
  const auto plan = [&](uint32_t mask, uint32_t causal) {
    return op.plan("custom_sdpa.default", {q, k, v, start, mask, zero, causal, op.null(), y});
  };
  const auto masked = plan(op.input({40, 61}), no);
  REQUIRE(masked.ok());
  REQUIRE((*masked)->commands.size() == 1);
  const auto& dispatch = dispatch_at(**masked, 0);
  const auto params = params_of<wgsl::AttentionTilesParams>(dispatch);
  CHECK(params.keys == 61);
  CHECK(params.mask_row == 61);
  CHECK(params.mask_head == 0);
  CHECK(override_of(dispatch, "masked") == 1);
  CHECK(override_of(dispatch, "causal") == 0);
  CHECK(override_of(dispatch, "positioned") == 0);

  const auto by_head = plan(op.input({1, 6, 1, 90}), op.value(true));
  REQUIRE(by_head.ok());
  const auto head_params = params_of<wgsl::AttentionTilesParams>(dispatch_at(**by_head, 0));
  CHECK(head_params.keys == 90);
  CHECK(head_params.mask_row == 0);
  CHECK(head_params.mask_head == 90);
  CHECK(override_of(dispatch_at(**by_head, 0), "positioned") == 1);

  const auto plain = plan(op.null(), no);
  REQUIRE(plain.ok());
  CHECK(override_of(dispatch_at(**plain, 0), "positioned") == 1);
  CHECK(params_of<wgsl::AttentionTilesParams>(dispatch_at(**plain, 0)).keys == 90);

  CHECK(plan(op.input({40, 91}), no).error().code() == ErrorCode::invalid_program);
  CHECK(plan(op.input({39, 90}), no).error().code() == ErrorCode::invalid_program);
  CHECK(plan(op.input({40, 90}, GraphDtype::float16), no).error().code() == ErrorCode::unsupported);
}

TEST_CASE("et_vk.sdpa: batches and heads are alike; masks that repeat along one only are refused") {
  OneOpFixture op;
  const uint32_t q = op.input({2, 3, 40, 8});
  const uint32_t k = op.input({2, 3, 70, 8});
  const uint32_t y = op.output({2, 3, 40, 8});
  const auto plan = [&](uint32_t mask) {
    return op.plan("et_vk.sdpa.default", {q, k, k, mask, op.value(0.5), y});
  };
  const auto full = plan(op.input({2, 3, 40, 70}));
  REQUIRE(full.ok());
  const auto params = params_of<wgsl::AttentionTilesParams>(dispatch_at(**full, 0));
  CHECK(params.rows == 40);
  CHECK(params.heads == 6);
  CHECK(params.group == 1);
  CHECK(params.keys == 70);
  CHECK(params.q_row == 2);
  CHECK(params.q_head == 80);
  CHECK(params.kv_head == 140);
  CHECK(params.mask_head == 2800);
  CHECK(params.mask_row == 70);
  CHECK(params.scale == 0.5f);
  CHECK(dispatch_at(**full, 0).grid == gpu::Grid{12, 1, 1});
  CHECK(plan(op.input({40, 70})).ok());
  CHECK(plan(op.input({2, 1, 40, 70})).error().code() == ErrorCode::unsupported);
  CHECK(
      op.plan_error("et_vk.sdpa.default", {q, op.input({2, 3, 70, 4}), k, op.null(), op.null(), y})
          .code() == ErrorCode::invalid_program);
}

TEST_CASE("update_cache: live rows, types, indices") {
  OneOpFixture op;
  const uint32_t value = op.input({1, 6, 3, 5});
  const uint32_t cache = op.tensor({1, 9, 3, 5}, GraphDtype::float16);
  const uint32_t start = op.value(int64_t{2});
  const uint32_t result = op.output({1});
  const auto plan =
      op.plan("update_cache.default", {value, cache, start, result}, {Shape{1, 4, 3, 5}});
  REQUIRE(plan.ok());
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<wgsl::CacheUpdateParams>(dispatch);
  CHECK(params.n == 60);
  CHECK(params.width == 15);
  CHECK(params.rows == 4);
  CHECK(params.capacity == 9);
  CHECK(override_of(dispatch, "indexed") == 0);
  CHECK(dispatch.kernel.prelude == "alias T = f32;\nalias C = f16;\n");

  const uint32_t indices = op.input({1, 6}, GraphDtype::int32);
  const auto indexed = op.plan("update_cache_with_indices.default",
                               {value, cache, op.value(int64_t{99}), indices, result});
  REQUIRE(indexed.ok());
  CHECK(override_of(dispatch_at(**indexed, 0), "indexed") == 1);

  CHECK_FALSE(op.plan("update_cache.default", {value, cache, op.value(int64_t{4}), result}).ok());
  CHECK_FALSE(op.plan("update_cache.default", {value, cache, op.value(int64_t{-1}), result}).ok());
  CHECK(op.plan_error("update_cache.default", {op.input({10, 3, 5}), cache, start, result})
            .message() == "Number of rows (10) exceeds what the cache holds (9).");
  CHECK(op.plan_error("update_cache.default", {op.input({6, 5}), cache, start, result}).code() ==
        ErrorCode::invalid_program);
  CHECK(op.plan_error("update_cache.default", {op.input({1, 6, 5, 3}), cache, start, result})
            .code() == ErrorCode::invalid_program);
  CHECK(op.plan_error("update_cache.default",
                      {op.input({1, 6, 3, 5}, GraphDtype::int32), cache, start, result})
            .code() == ErrorCode::unsupported);
  CHECK(op.plan_error("update_cache_with_indices.default",
                      {value, cache, start, op.input({5}, GraphDtype::int32), result})
            .code() == ErrorCode::invalid_program);
}

}  // namespace
}  // namespace ptero::ops
