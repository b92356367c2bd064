// SPDX-License-Identifier: BSD-3-Clause
// Which kernels attention takes, and how they divide the work.
#include <doctest/doctest.h>

#include "ops/attention/attention_fixture.h"
#include "ops/attention/attention_scores.wgsl.h"
#include "ops/attention/attention_softmax.wgsl.h"
#include "ops/attention/attention_tiles.wgsl.h"
#include "ops/attention/attention_weigh.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;

TEST_CASE("attention: options name the route, which gives way where it does not serve") {
  const auto kernel = [](SdpaFixture& op, std::string_view route) {
    op.device.options.sdpa_route = route;
    const auto plan = op.plan("sdpa_with_kv_cache.default", op.args());
    REQUIRE(plan.ok());
    return (*plan)->commands.size() > 1 ? dispatch_at(**plan, 1).kernel.source->name : "";
  };
  SdpaFixture op(5, 8, 2, 64, 100);
  CHECK(kernel(op, "rows") == "attention_rows");
  CHECK(kernel(op, "split") == "attention_split");
  CHECK(kernel(op, "tiles") == "attention_tiles");
  CHECK(kernel(op, "materialized") == "attention_scores");
  CHECK(kernel(op, "auto") == "attention_tiles");
  op.device.is_software = true;
  CHECK(kernel(op, "auto") == "attention_rows");
  SdpaFixture large(5, 8, 2, 516, 100);
  CHECK(kernel(large, "rows") == "attention_tiles");
  CHECK(kernel(large, "split") == "attention_tiles");
  op.device.limits.max_storage_binding_size = 100 * 2 * 64 * 4;
  op.device.limits.max_workgroups_per_dimension = 1000;
  CHECK(kernel(op, "materialized") == "attention_scores");
  SdpaFixture many(100, 8, 2, 64, 100);
  many.device.limits.max_storage_binding_size = 100 * 8 * 64 * 4;
  CHECK(kernel(many, "materialized") == "attention_tiles");
}

TEST_CASE("attention: matrix units, where products in f16 may be") {
  const auto plan_of = [](SdpaFixture& op) {
    auto plan = op.plan("sdpa_with_kv_cache.default", op.args());
    REQUIRE(plan.ok());
    REQUIRE((*plan)->commands.size() > 1);
    return std::move(*plan);
  };
  const auto kernel = [&](SdpaFixture& op) {
    return dispatch_at(*plan_of(op), 1).kernel.source->name;
  };
  const auto with_matrices = [](SdpaFixture& op, uint32_t side, uint32_t lanes) {
    op.device.features = gpu::FeatureSet::all();
    op.device.subgroup_min_size = op.device.subgroup_max_size = lanes;
    op.device.matrix_shapes = {{gpu::MatrixType::f16, gpu::MatrixType::f32, side, side, side}};
    op.device.limits.max_workgroup_storage_size = 49152;
  };
  SdpaFixture op(508, 32, 8, 64, 600);
  with_matrices(op, 16, 32);
  CHECK(kernel(op) == "attention_tiles");  // single precision stays so
  op.device.options.enable_f16_gemm = true;
  CHECK(kernel(op) == "attention_matrix");
  // 2,032 queries of a head of k: 32 blocks of 64.
  CHECK(dispatch_at(*plan_of(op), 1).grid == gpu::Grid{256, 1, 1});
  op.device.limits.max_workgroup_storage_size = 16384;
  CHECK(kernel(op) == "attention_tiles");
  op.device.limits.max_workgroup_storage_size = 20480;  // fewer queries fit
  CHECK(dispatch_at(*plan_of(op), 1).grid == gpu::Grid{512, 1, 1});
  op.device.limits.max_workgroup_storage_size = 49152;
  op.device.limits.max_invocations_per_workgroup = 64;
  CHECK(dispatch_at(*plan_of(op), 1).grid == gpu::Grid{512, 1, 1});
  op.device.features.erase(gpu::Feature::subgroup_matrix);
  CHECK(kernel(op) == "attention_tiles");

  const auto by_name = [&](uint32_t dim, uint32_t side, uint32_t lanes) {
    SdpaFixture named(40, 4, 2, dim, 100);
    with_matrices(named, side, lanes);
    named.device.options.sdpa_route = "matrix";
    return kernel(named);
  };
  CHECK(by_name(128, 16, 32) == "attention_matrix");
  CHECK(by_name(64, 8, 8) == "attention_matrix");
  CHECK(by_name(128, 8, 8) == "attention_matrix");   // eight sums of 16 a subgroup
  CHECK(by_name(64, 16, 64) == "attention_matrix");  // subgroups do not share queries
  CHECK(by_name(16, 16, 32) == "attention_matrix");  // nor here: columns of y are one matrix
  CHECK(by_name(72, 16, 32) == "attention_tiles");   // no whole number of matrices
  CHECK(by_name(256, 16, 32) == "attention_tiles");  // more than workgroup memory holds
  CHECK(by_name(192, 8, 8) == "attention_tiles");    // more sums than have names
  CHECK(by_name(64, 4, 8) == "attention_tiles");     // matrices narrower than a chunk
  CHECK(by_name(64, 16, 4) == "attention_tiles");    // fewer threads than queries
  SdpaFixture few(4, 4, 2, 64, 100);
  with_matrices(few, 16, 32);
  few.device.options.enable_f16_gemm = true;
  CHECK(kernel(few) == "attention_split");
}

TEST_CASE("attention: tiles of 16 or 32 queries") {
  const auto blocks = [](uint32_t tile) {
    SdpaFixture op(100, 8, 2, 64, 100);
    op.device.options.sdpa_query_tile = tile;
    const auto plan = op.plan("sdpa_with_kv_cache.default", op.args());
    REQUIRE(plan.ok());
    CHECK(dispatch_at(**plan, 1).kernel.source == &wgsl::kAttentionTiles);
    CHECK(dispatch_at(**plan, 1).kernel.prelude.find(
              tile == 16 ? "const kEach = 2u;" : "const kEach = 4u;") != std::string::npos);
    return dispatch_at(**plan, 1).grid;
  };
  CHECK(blocks(0) == gpu::Grid{26, 1, 1});  // 400 queries of each head of k
  CHECK(blocks(32) == gpu::Grid{26, 1, 1});
  CHECK(blocks(16) == gpu::Grid{50, 1, 1});
}

TEST_CASE("attention, materialized: three steps over scores of every key") {
  SdpaFixture op(5, 8, 2, 64, 100);
  op.device.options.sdpa_route = "materialized";
  const auto plan = op.plan("sdpa_with_kv_cache.default", op.args());
  REQUIRE(plan.ok());
  REQUIRE((*plan)->commands.size() == 4);
  CHECK((*plan)->scratch == std::vector<uint64_t>{40 * 100 * 4});
  CHECK(params_of<wgsl::AttentionScoresParams>(dispatch_at(**plan, 1)).keys == 100);
  CHECK(dispatch_at(**plan, 1).grid == gpu::Grid{2, 40, 1});
  CHECK(dispatch_at(**plan, 1).live_grid->add == 5);
  CHECK(dispatch_at(**plan, 2).grid == gpu::Grid{40, 1, 1});
  CHECK(params_of<wgsl::AttentionSoftmaxParams>(dispatch_at(**plan, 2)).rows == 5);
  CHECK(dispatch_at(**plan, 3).grid == gpu::Grid{10, 1, 1});
  CHECK(params_of<wgsl::AttentionWeighParams>(dispatch_at(**plan, 3)).group == 4);
}

}  // namespace
}  // namespace ptero::ops
