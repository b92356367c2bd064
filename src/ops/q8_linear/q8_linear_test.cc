// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/q8_linear/q8_linear.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using pte::GraphDtype;
using wgsl::Q8LinearParams;

constexpr const char* kToFloat = "et_vk.linear_q8ta_q8csw.default";
constexpr const char* kToBytes = "et_vk.q8ta_linear.default";

struct Layer {
  OneOpFixture op;
  std::vector<uint32_t> args;  // of linear_q8ta_q8csw

  Layer() {
    const uint32_t x = op.input({1, 9, 30}, GraphDtype::int8);
    const uint32_t scale = op.value(0.5);
    const uint32_t zero = op.value(int64_t{-3});
    const uint32_t weight = op.tensor({7, 32}, GraphDtype::int8);
    const uint32_t sums = op.tensor({8}, GraphDtype::int32);
    const uint32_t scales = op.tensor({8});
    args = {x, scale, zero, weight, sums, scales, op.null(), op.output({1, 9, 7})};
  }
  std::vector<uint32_t> byte_args(const std::string& activation, int64_t zero) {
    std::vector<uint32_t> made(args.begin(), args.begin() + 6);
    made.push_back(op.value(0.25));
    made.push_back(op.value(zero));
    made.push_back(op.tensor({7}));
    made.push_back(op.value(activation));
    made.push_back(op.output({1, 9, 7}, GraphDtype::int8));
    return made;
  }
  std::string error(size_t arg, uint32_t value) {
    std::vector<uint32_t> spoilt = args;
    spoilt[arg] = value;
    return op.plan_error(kToFloat, spoilt).message();
  }
};

TEST_CASE("linear_q8ta_q8csw: live rows; padded rows and scales; no words where rows are not") {
  Layer layer;
  const auto plan = layer.op.plan(kToFloat, layer.args, {Shape{1, 2, 30}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{1, 2, 7});
  const auto& dispatch = dispatch_at(**plan, 0);
  const auto params = params_of<Q8LinearParams>(dispatch);
  CHECK(params.n == 7);
  CHECK(params.rows == 7);
  CHECK(params.k == 30);
  CHECK(params.w_row == 32);
  CHECK(params.elements == 14);
  CHECK(params.x_zero == -3);
  CHECK(params.flags == 0);
  CHECK(gpu::override_value(dispatch.kernel, "whole_words").value() == 0);
  CHECK(gpu::override_value(dispatch.kernel, "bytes").value() == 0);
  CHECK(dispatch.kernel.features == gpu::FeatureSet{});
  layer.op.device.features = {gpu::Feature::packed_dot};
  const auto packed = layer.op.plan(kToFloat, layer.args);
  REQUIRE(packed.ok());
  CHECK(dispatch_at(**packed, 0).kernel.features == gpu::FeatureSet{gpu::Feature::packed_dot});
}

TEST_CASE("q8ta_linear: a relu clamps at the zero point") {
  for (const char* activation : {"none", "relu"}) {
    Layer layer;
    const auto plan = layer.op.plan(kToBytes, layer.byte_args(activation, 11));
    REQUIRE(plan.ok());
    const auto& dispatch = dispatch_at(**plan, 0);
    const auto params = params_of<Q8LinearParams>(dispatch);
    CHECK(params.low == (activation == std::string("relu") ? 11 : -128));
    CHECK(params.y_inverse == 4);
    CHECK(params.y_zero == 11);
    CHECK(params.flags == 1);
    CHECK(gpu::override_value(dispatch.kernel, "bytes").value() == 1);
    CHECK(dispatch.grid == gpu::Grid{1, 1, 1});  // 63 bytes in 16 words
  }
  Layer layer;
  CHECK(layer.op.plan_error(kToBytes, layer.byte_args("tanh", 0)).message() ==
        "Activation (tanh) is neither none nor relu.");
  CHECK(layer.op.plan_error(kToBytes, layer.byte_args("none", 128)).message() ==
        "Zero point (128) of the result is no int8.");
}

TEST_CASE("linear_q8ta_q8csw: what does not fit together is refused") {
  Layer layer;
  CHECK(layer.error(3, layer.op.tensor({7, 28}, GraphDtype::int8)) ==
        "A row of the weight (28 elements) is shorter than one of x (30).");
  CHECK(layer.error(0, layer.op.input({1, 9, 30})).find("not int8") != std::string::npos);
  CHECK(layer.error(5, layer.op.tensor({6})).find("no 7 numbers") != std::string::npos);
  CHECK(layer.error(6, layer.op.tensor({6})).find("no 7 numbers") != std::string::npos);
  CHECK(layer.error(1, layer.op.value(-0.5)).find("positive") != std::string::npos);
  CHECK(layer.error(7, layer.op.output({1, 9, 6})).find("bound") != std::string::npos);
}

}  // namespace
}  // namespace ptero::ops
