// SPDX-License-Identifier: BSD-3-Clause
#include "ops/quant_linear/q4_linear.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/quant_linear/q4_any.wgsl.h"
#include "ops/quant_linear/q4_column.wgsl.h"
#include "ops/quant_linear/q4_column_rows.wgsl.h"
#include "ops/quant_linear/q4_gemv.wgsl.h"
#include "ops/quant_linear/q4_gemv_subgroup.wgsl.h"
#include "ops/quant_linear/q4_steel.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;

// x, weight, scales, group, bias or Null, y
std::vector<uint32_t> q4gsw(OneOpFixture& op, uint32_t m, uint32_t n, uint32_t k, uint32_t group,
                            bool bias = false, GraphDtype type = GraphDtype::float32) {
  const uint32_t x = op.input({m, k}, type);
  const uint32_t weight = op.input({n, (k + 7) / 8 * 4}, GraphDtype::uint8);
  const uint32_t scales = op.input({(k + group - 1) / group, (n + 3) / 4 * 4}, type);
  const uint32_t size = op.value(int64_t{group});
  const uint32_t addend = bias ? op.input({(n + 3) / 4 * 4}, type) : op.null();
  return {x, weight, scales, size, addend, op.output({m, n}, type)};
}

TEST_CASE("linear_q4gsw: no plan adds up in f16 unless asked to") {
  for (const uint32_t m : {127, 128, 508, 511, 512}) {
    for (const bool asked : {false, true}) {
      OneOpFixture op;
      op.device.features = {gpu::Feature::shader_f16};
      op.device.options.enable_f16_accumulate_gemm = asked;
      const auto plan = op.plan("et_vk.linear_q4gsw.default", q4gsw(op, m, 2048, 2048, 64));
      REQUIRE(plan.ok());
      REQUIRE((*plan)->dispatches() == 1);
      const std::string_view name = dispatch_at(**plan, 0).kernel.source->name;
      CHECK(name == (asked ? "q4_steel_accumulate" : "q4_steel"));
    }
  }
}

TEST_CASE("linear_q4gsw: tiles beyond a grid are folded, then taken in parts") {
  OneOpFixture op;
  op.device.limits.max_storage_binding_size = uint64_t{4} << 30;
  const auto plan = op.plan("et_vk.linear_q4gsw.default", q4gsw(op, 8192, 65536, 8, 8));
  // 128 x 1024 tiles
  REQUIRE(plan.ok());
  REQUIRE((*plan)->dispatches() == 1);
  const gpu::Grid folded = dispatch_at(**plan, 0).grid;
  CHECK(folded.x <= 65535);
  CHECK(folded.y > 1);
  CHECK(uint64_t{folded.x} * folded.y >= 128 * 1024);

  for (const uint32_t limit : {2, 3, 8}) {
    OneOpFixture small;
    small.device.limits.max_workgroups_per_dimension = limit;
    const auto parts =
        small.plan("et_vk.linear_q4gsw.default", q4gsw(small, 300, 1000, 8, 8, true));
    REQUIRE(parts.ok());
    CHECK((*parts)->dispatches() > 1);
    std::vector<uint32_t> covered(300 * 1000);
    for (size_t i = 0; i < (*parts)->dispatches(); ++i) {
      const auto& dispatch = dispatch_at(**parts, i);
      const auto params = params_of<wgsl::Q4SteelParams>(dispatch);
      CHECK(dispatch.grid.x <= limit);
      CHECK(dispatch.grid.y <= limit);
      CHECK(uint64_t{dispatch.grid.x} * dispatch.grid.y >=
            uint64_t{(params.m + 63) / 64} * ((params.n + 63) / 64));
      const uint64_t first = dispatch.bindings[4].offset / 4 + params.y_first;
      for (uint64_t m = 0; m < params.m; ++m) {
        for (uint64_t n = 0; n < params.n; ++n) {
          ++covered.at(first + m * 1000 + n);
        }
      }
      CHECK(dispatch.bindings[1].offset / 4 == first % 1000);
      CHECK(dispatch.bindings[0].offset / 4 + 4 * uint64_t{params.x_first} == first / 1000 * 8);
    }
    CHECK(std::count(covered.begin(), covered.end(), 1) == 300 * 1000);
  }
  OneOpFixture one;
  one.device.limits.max_workgroups_per_dimension = 1;
  CHECK(one.plan_error("et_vk.linear_q4gsw.default", q4gsw(one, 1, 64, 8, 8)).code() ==
        ErrorCode::unsupported);
}

TEST_CASE("linear_q4gsw: rows of any rank at live shapes") {
  OneOpFixture op;
  op.device.is_software = true;
  const uint32_t x = op.input({1, 63, 256});
  const uint32_t weight = op.input({99, 128}, GraphDtype::uint8);
  const uint32_t scales = op.input({8, 100});
  const uint32_t y = op.output({1, 63, 99});
  const auto plan = op.plan("et_vk.linear_q4gsw.default",
                            {x, weight, scales, op.value(int64_t{32}), op.null(), y},
                            {Shape{1, 5, 256}, Shape{99, 128}, Shape{8, 100}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{1, 5, 99});
  REQUIRE((*plan)->dispatches() == 1);
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<wgsl::Q4ColumnRowsParams>(dispatch);
  CHECK(params.m == 5);
  CHECK(params.n == 99);
  CHECK(params.words == 32);
  CHECK(params.w_row == 32);
  CHECK(params.group_words == 4);
  CHECK(params.x_row == 64);
  CHECK(params.y_row == 99);
  CHECK(params.s_row == 100);
  CHECK(params.flags == 0);
  CHECK(dispatch.grid == gpu::Grid{4, 1, 1});  // two blocks of rows, two of columns
}

TEST_CASE("linear_q4gsw: a GEMV has blocks of rows of x along z") {
  OneOpFixture op;
  const auto plan = op.plan("et_vk.linear_q4gsw.default", q4gsw(op, 6, 100, 256, 32, true));
  REQUIRE(plan.ok());
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<wgsl::Q4GemvParams>(dispatch);
  CHECK(params.flags == 1);
  CHECK(dispatch.grid == gpu::Grid{50, 1, 2});
  CHECK(dispatch.kernel.features == gpu::FeatureSet{});
}

TEST_CASE("linear_q4gsw: many columns fold over y") {
  OneOpFixture op;
  op.device.features = {gpu::Feature::subgroups};
  const auto plan = op.plan("et_vk.linear_q4gsw.default", q4gsw(op, 1, 800000, 64, 64));
  REQUIRE(plan.ok());
  const auto& dispatch = dispatch_at(**plan, 0);
  CHECK(params_of<wgsl::Q4GemvSubgroupParams>(dispatch).n == 800000);
  CHECK(dispatch.grid == gpu::Grid{50000, 2, 1});
  CHECK(dispatch.kernel.features.contains(gpu::Feature::subgroups));
}

TEST_CASE("linear_q4gsw: a cap of 4 MiB a binding splits weights by rows, scales by groups") {
  OneOpFixture op;
  op.device.is_software = true;
  op.device.limits.max_storage_binding_size = 4 << 20;
  const auto plan = op.plan("et_vk.linear_q4gsw.default", q4gsw(op, 1, 128256, 2048, 32, true));
  REQUIRE(plan.ok());
  // 4096 rows of the weight at a time; 64 rows of 513,024 bytes of scales, 8 at a time.
  REQUIRE((*plan)->dispatches() == 32 * 8);
  uint64_t n = 0;
  uint64_t groups = 0;
  for (size_t i = 0; i < (*plan)->commands.size(); ++i) {
    const auto& dispatch = dispatch_at(**plan, i);
    const auto params = params_of<wgsl::Q4ColumnParams>(dispatch);
    CHECK(params.y_first == n);
    CHECK(params.w_first == groups * 4);
    CHECK(params.x_first == groups * 8);
    CHECK(params.flags == (groups == 0 ? 1 : 2));
    for (const auto& binding : dispatch.bindings) {
      CHECK(binding.size <= 4 << 20);
      CHECK(binding.offset % 256 == 0);
    }
    CHECK(dispatch.bindings[1].offset == n * 1024);
    CHECK(dispatch.bindings[1].size == params.n * 1024);
    CHECK(dispatch.bindings[2].offset + params.s_first * 4 == (groups * 128256 + n) * 4);
    const uint64_t count = params.words / 4;
    CHECK(dispatch.bindings[2].offset + dispatch.bindings[2].size ==
          ((groups + count - 1) * 128256 + n + params.n) * 4);
    if (groups == 0) {
      CHECK(dispatch.bindings[3].offset + params.bias_first * 4 == n * 4);
    }
    groups += count;
    if (groups == 64) {
      groups = 0;
      n += params.n;
    }
  }
  CHECK(n == 128256);
}

TEST_CASE(
    "linear_q4gsw: rows of x and y beyond a binding are taken in blocks that start anywhere") {
  for (const uint32_t k : {128, 132}) {
    OneOpFixture op;
    op.device.limits.max_storage_binding_size = 65536;
    const auto plan = op.plan("et_vk.linear_q4gsw.default", q4gsw(op, 300, 63, k, k));
    REQUIRE(plan.ok());
    REQUIRE((*plan)->dispatches() == 3);
    uint64_t row = 0;
    for (size_t i = 0; i < 3; ++i) {
      const auto& dispatch = dispatch_at(**plan, i);
      uint64_t m = 0;
      uint64_t x_first = 0;
      uint64_t y_first = 0;
      if (k == 128) {
        const auto params = params_of<wgsl::Q4SteelParams>(dispatch);
        m = params.m;
        x_first = params.x_first * 4;
        y_first = params.y_first;
      } else {
        const auto params = params_of<wgsl::Q4AnyParams>(dispatch);
        m = params.m;
        x_first = params.x_first;
        y_first = params.y_first;
      }
      for (const auto& binding : dispatch.bindings) {
        CHECK(binding.offset % 256 == 0);
        CHECK(binding.size <= 65536);
      }
      CHECK(dispatch.bindings[0].offset + x_first * 4 == row * k * 4);
      CHECK(dispatch.bindings[0].offset + dispatch.bindings[0].size == (row + m) * k * 4);
      CHECK(dispatch.bindings[4].offset + y_first * 4 == row * 63 * 4);
      CHECK(dispatch.bindings[4].offset + dispatch.bindings[4].size == (row + m) * 63 * 4);
      row += m;
    }
    CHECK(row == 300);
  }
}

TEST_CASE("linear_q4gsw: float16 throughout") {
  OneOpFixture op;
  op.device.features = {gpu::Feature::shader_f16};
  const auto plan =
      op.plan("et_vk.linear_q4gsw.default", q4gsw(op, 1, 64, 64, 32, true, GraphDtype::float16));
  REQUIRE(plan.ok());
  const gpu::KernelKey& kernel = dispatch_at(**plan, 0).kernel;
  CHECK(kernel.prelude.find("alias X = f16;\nalias T = f16;\nalias S = f16;\n") == 0);
  CHECK(kernel.features == gpu::FeatureSet{gpu::Feature::shader_f16});
}

TEST_CASE("linear_qcs4w: one scale a row, the high half of a byte first") {
  OneOpFixture op;
  const uint32_t x = op.input({3, 13});
  const uint32_t weight = op.input({5, 7}, GraphDtype::uint8);
  const uint32_t scales = op.input({5});
  const uint32_t y = op.output({3, 5});
  const auto plan = op.plan("et_vk.linear_qcs4w.default", {x, weight, scales, y});
  REQUIRE(plan.ok());
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<wgsl::Q4AnyParams>(dispatch);
  CHECK(params.k == 13);
  CHECK(params.group == 13);
  CHECK(params.w_row == 7);
  CHECK(gpu::override_value(dispatch.kernel, "swapped").value() == 1);
}

TEST_CASE("linear_q4gsw: what does not fit together is refused") {
  OneOpFixture op;
  const std::vector<uint32_t> args = q4gsw(op, 2, 64, 64, 32, true);
  const uint32_t zero = op.value(int64_t{0});
  const uint32_t eight = op.value(int64_t{8});
  const auto error = [&](size_t arg, uint32_t value) {
    std::vector<uint32_t> spoilt = args;
    spoilt[arg] = value;
    const Error got = op.plan_error("et_vk.linear_q4gsw.default", spoilt);
    CHECK(got.code() != ErrorCode::internal);
    return got.message();
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(error(1, op.input({64, 31}, GraphDtype::uint8)) ==
        "A row of the packed weights (31 bytes) holds fewer elements than x (64).");
  CHECK(has(error(1, op.input({64, 32})), "byte"));
  CHECK(error(2, op.input({1, 64})) ==
        "Shape [1, 64] of scales is too small for 2 groups of 64 rows of the weight.");
  CHECK(has(error(2, op.input({2, 63})), "[2, 63]"));
  CHECK(error(3, zero) == "Group size (0) is below 1.");
  CHECK(has(error(3, eight), "8 groups"));
  CHECK(error(4, op.input({63})) ==
        "Number of elements (63) of the bias is below that of a row of y (64).");
  CHECK(has(error(5, op.output({2, 63})), "bound"));
  CHECK(has(error(5, op.output({2, 64}, GraphDtype::float16)), "differ"));
}

}  // namespace
}  // namespace ptero::ops
