// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/quant_linear/dot_tile.wgsl.h"
#include "ops/quant_linear/fake_quantize.wgsl.h"
#include "ops/quant_linear/q4_gemv.wgsl.h"
#include "ops/quant_linear/quantize_rows.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;

constexpr const char* kName = "et_vk.linear_dq8ca_q4gsw.default";

struct Layer {
  OneOpFixture op;
  std::vector<uint32_t> args;

  explicit Layer(uint32_t group = 32) {
    op.device.features = {gpu::Feature::packed_dot};
    const uint32_t x = op.input({1, 63, 256});
    const uint32_t x_scales = op.input({1, 63});
    const uint32_t x_zeros = op.input({1, 63}, GraphDtype::int8);
    const uint32_t weight = op.tensor({99, 128}, GraphDtype::uint8);
    const uint32_t sums = op.tensor({256 / group, 104}, GraphDtype::int32);
    const uint32_t scales = op.tensor({256 / group, 100});
    const uint32_t size = op.value(int64_t{group});
    args = {x, x_scales, x_zeros, weight, sums, scales, size, op.null(), op.output({1, 63, 99})};
  }
  std::vector<std::string_view> kernels(std::vector<Shape> live = {}) {
    const auto plan = op.plan(kName, args, std::move(live));
    REQUIRE(plan.ok());
    std::vector<std::string_view> names;
    for (size_t i = 0; i < (*plan)->commands.size(); ++i) {
      names.push_back(dispatch_at(**plan, i).kernel.source->name);
    }
    return names;
  }
  std::string error(size_t arg, uint32_t value) {
    std::vector<uint32_t> spoilt = args;
    spoilt[arg] = value;
    return op.plan_error(kName, spoilt).message();
  }
};

using Names = std::vector<std::string_view>;

TEST_CASE("linear_dq8ca_q4gsw: many rows become int8 and meet the weights in dot products") {
  Layer layer;
  const auto plan = layer.op.plan(kName, layer.args);
  REQUIRE(plan.ok());
  REQUIRE((*plan)->dispatches() == 2);
  REQUIRE((*plan)->scratch.size() == 1);
  CHECK((*plan)->scratch[0] == 63 * 256);
  const auto rows = params_of<wgsl::QuantizeRowsParams>(dispatch_at(**plan, 0));
  CHECK(rows.n == 63 * 32);
  CHECK(rows.width == 32);
  const auto& product = dispatch_at(**plan, 1);
  const auto params = params_of<wgsl::DotTileParams>(product);
  CHECK(params.m == 63);
  CHECK(params.n == 99);
  CHECK(params.words == 32);
  CHECK(params.group_words == 4);
  CHECK(params.s_row == 100);
  CHECK(params.sums_row == 104);
  CHECK(params.flags == 0);
  CHECK(product.grid == gpu::Grid{2, 1, 1});
  CHECK(product.kernel.features == gpu::FeatureSet{gpu::Feature::packed_dot});
  CHECK(product.bindings[0].is_scratch);
}

TEST_CASE("linear_dq8ca_q4gsw: few rows, a CPU, short groups and no dot products take numbers") {
  const std::vector<Shape> one_row = {Shape{1, 1, 256}, Shape{1, 1}, Shape{1, 1}};
  Layer layer;
  CHECK(layer.kernels() == Names{"quantize_rows", "dot_tile"});
  CHECK(layer.kernels(one_row) == Names{"fake_quantize", "q4_gemv"});
  CHECK(Layer(16).kernels() == Names{"fake_quantize", "q4_steel"});
  layer.op.device.features = {};
  CHECK(layer.kernels() == Names{"fake_quantize", "q4_steel"});
  Layer on_cpu;
  on_cpu.op.device.is_software = true;
  CHECK(on_cpu.kernels() == Names{"fake_quantize", "q4_column_rows"});
  Layer capped;
  capped.op.device.limits.max_storage_binding_size = 16384;
  CHECK(capped.kernels().front() == "fake_quantize");
}

TEST_CASE("linear_dq8ca_q4gsw: rows beyond a binding become numbers and products in blocks") {
  Layer layer;
  layer.op.device.limits.max_storage_binding_size = 32768;
  layer.args[3] = layer.op.tensor({64, 128}, GraphDtype::uint8);
  layer.args.back() = layer.op.output({1, 63, 64});
  const auto plan = layer.op.plan(kName, layer.args);
  REQUIRE(plan.ok());
  REQUIRE((*plan)->dispatches() == 5);
  CHECK((*plan)->scratch[0] == 63 * 1024);
  const auto rows = params_of<wgsl::FakeQuantizeParams>(dispatch_at(**plan, 1));
  CHECK(rows.first == 32);
  CHECK(rows.n == 31 * 256);
  CHECK(dispatch_at(**plan, 1).bindings[0].offset == 32 * 1024);
  CHECK(dispatch_at(**plan, 1).bindings[3].offset == 32 * 1024);
  CHECK(dispatch_at(**plan, 1).bindings[3].is_scratch);
  CHECK(dispatch_at(**plan, 2).bindings[0].offset == 0);
  CHECK(dispatch_at(**plan, 2).bindings[0].size == 31 * 1024);
  CHECK(dispatch_at(**plan, 3).bindings[0].is_scratch);
  CHECK(dispatch_at(**plan, 3).bindings[0].offset == 31 * 1024);
  CHECK(dispatch_at(**plan, 3).bindings[0].size == 31 * 1024);
}

TEST_CASE("linear_dq8ca_q4gsw: what does not fit together is refused") {
  Layer layer;
  CHECK(layer.error(1, layer.op.input({1, 62})) ==
        "Numbers of scales (62) and zero points (63) are not that of rows of x (63).");
  CHECK(layer.error(2, layer.op.input({1, 63})).find("int8") != std::string::npos);
  CHECK(layer.error(5, layer.op.tensor({7, 100})).find("too small") != std::string::npos);
  CHECK(layer.error(3, layer.op.tensor({99, 127}, GraphDtype::uint8)).find("127 bytes") !=
        std::string::npos);
}

}  // namespace
}  // namespace ptero::ops
