// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/quant_affine/choose_qparams.wgsl.h"
#include "ops/quant_affine/dequantize.wgsl.h"
#include "ops/quant_affine/quantize.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;

constexpr const char* kChoose = "torchao.choose_qparams_affine.default";
constexpr const char* kQuantize = "quantized_decomposed.quantize_per_tensor.default";
constexpr const char* kDequantize = "quantized_decomposed.dequantize_per_tensor.default";

struct Choose {
  OneOpFixture op;
  std::vector<uint32_t> args;

  Choose() {
    const uint32_t x = op.input({1, 63, 256});
    const uint32_t scales = op.output({1, 63});
    const uint32_t zeros = op.output({1, 63}, GraphDtype::int8);
    const std::string mapping = "ASYMMETRIC";
    args = {x,
            op.value(mapping),
            op.integers({1, 1, 256}),
            op.null(),
            op.value(int64_t{-128}),
            op.value(int64_t{127}),
            op.null(),
            op.null(),
            op.null(),
            op.null(),
            op.list({scales, zeros})};
  }
  std::string error(size_t arg, uint32_t value) {
    std::vector<uint32_t> spoilt = args;
    spoilt[arg] = value;
    return op.plan_error(kChoose, spoilt).message();
  }
};

TEST_CASE("choose_qparams_affine: a scale and a zero point a live row, four rows to a word") {
  Choose choose;
  const auto plan = choose.op.plan(kChoose, choose.args, {Shape{1, 5, 256}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{1, 5});
  CHECK((*plan)->output_shapes[1] == Shape{1, 5});
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<wgsl::ChooseQparamsParams>(dispatch);
  CHECK(params.rows == 5);
  CHECK(params.width == 256);
  CHECK(params.qmin == -128);
  CHECK(params.qmax == 127);
  CHECK(params.eps == 0x1p-23f);
  CHECK(dispatch.grid == gpu::Grid{2, 1, 1});  // 64 threads a word
}

TEST_CASE("choose_qparams_affine: other mappings, blocks and ranges are refused") {
  Choose choose;
  const std::string symmetric = "SYMMETRIC";
  CHECK(choose.error(1, choose.op.value(symmetric)) ==
        "Mapping type (SYMMETRIC) is not ASYMMETRIC, the only one of this operator.");
  CHECK(choose.error(2, choose.op.integers({1, 1, 32})).find("Block dimension 2 (32)") == 0);
  CHECK(choose.error(2, choose.op.integers({1, 256})).find("(2)") != std::string::npos);
  CHECK(choose.error(4, choose.op.integers({1})).find("not an integer") != std::string::npos);
  const uint32_t below = choose.op.value(int64_t{-129});
  CHECK(choose.error(4, below).find("[-129, 127]") != std::string::npos);
  CHECK(choose.error(0, choose.op.input({1, 63, 256}, GraphDtype::int32)).find("int32") !=
        std::string::npos);
}

TEST_CASE("quantize_per_tensor and dequantize_per_tensor: words, elements and what is refused") {
  OneOpFixture op;
  const uint32_t x = op.input({3, 7});
  const uint32_t q = op.output({3, 7}, GraphDtype::int8);
  const uint32_t scale = op.value(0.25);
  const uint32_t zero = op.value(int64_t{3});
  const uint32_t low = op.value(int64_t{-128});
  const uint32_t high = op.value(int64_t{127});
  const uint32_t none = op.null();
  const auto plan = op.plan(kQuantize, {x, scale, zero, low, high, none, q}, {Shape{2, 7}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{2, 7});
  const auto params = params_of<wgsl::QuantizeParams>(dispatch_at(**plan, 0));
  CHECK(params.n == 14);
  CHECK(params.inverse == 4);
  CHECK(params.zero == 3);
  CHECK(params.low == -128);
  CHECK(params.high == 127);

  const uint32_t y = op.output({3, 7});
  const uint32_t bytes = op.input({3, 7}, GraphDtype::uint8);
  const uint32_t top = op.value(int64_t{255});
  const uint32_t bottom = op.value(int64_t{0});
  const auto back = op.plan(kDequantize, {bytes, scale, zero, bottom, top, none, y});
  REQUIRE(back.ok());
  const auto back_params = params_of<wgsl::DequantizeParams>(dispatch_at(**back, 0));
  CHECK(back_params.n == 21);
  CHECK(back_params.zero == 3);
  CHECK(back_params.is_signed == 0);

  const auto message = [&](const char* name, std::vector<uint32_t> args) {
    return op.plan_error(name, std::move(args)).message();
  };
  CHECK(message(kQuantize, {x, op.value(0.0), zero, low, high, none, q}) ==
        "Scale (0) is not a positive number.");
  CHECK(message(kQuantize, {x, scale, zero, low, top, none, q}).find("[-128, 255]") !=
        std::string::npos);
  CHECK(message(kQuantize, {x, scale, zero, low, high, none, y}).find("neither int8 nor uint8") !=
        std::string::npos);
  CHECK(message(kDequantize, {x, scale, zero, low, high, none, y}).find("neither int8 nor uint8") !=
        std::string::npos);
}

}  // namespace
}  // namespace ptero::ops
