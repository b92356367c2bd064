// SPDX-License-Identifier: BSD-3-Clause
// The corners of elementwise kernels that exported models do not visit: special values, quotients
// next to integers, large arguments, conversions. Expected values come from C++ in double.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "graph/model.h"
#include "graph/session.h"
#include "ops/all_operators.h"
#include "pte/graph.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using pte::GraphDtype;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

gpu::Device& shared_device() {
  static gpu::Device device = open_device();
  return device;
}

struct Operand {
  GraphDtype dtype;
  std::vector<std::byte> bytes;
  uint32_t count;
};
template <typename T>
Operand operand(GraphDtype dtype, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {dtype, {bytes.begin(), bytes.end()}, static_cast<uint32_t>(values.size())};
}
Operand floats(const std::vector<float>& values) {
  return operand(GraphDtype::float32, values);
}
Operand ints(const std::vector<int32_t>& values) {
  return operand(GraphDtype::int32, values);
}

// Runs one operator on vectors, with `scalars` after them, in memory filled with NaN before.
template <typename T>
std::vector<T> run(const std::string& name, const std::vector<Operand>& operands,
                   std::vector<pte::GraphValue> scalars, GraphDtype result) {
  pte::Graph graph;
  std::vector<uint32_t> args;
  const auto add = [&](pte::GraphValue value) {
    graph.values.push_back(std::move(value));
    args.push_back(static_cast<uint32_t>(graph.values.size() - 1));
  };
  const auto add_tensor = [&](GraphDtype dtype, uint32_t count) {
    pte::GraphTensor tensor;
    tensor.dtype = dtype;
    tensor.dims = {count};
    add(std::move(tensor));
  };
  std::vector<graph::RunInput> inputs;
  for (const Operand& x : operands) {
    add_tensor(x.dtype, x.count);
    graph.inputs.push_back(args.back());
    inputs.push_back({{graph::Shape{x.count}, 0}, x.bytes});
  }
  for (pte::GraphValue& scalar : scalars) {
    add(std::move(scalar));
  }
  add_tensor(result, operands[0].count);
  graph.outputs = {args.back()};
  graph.chain = {{0, name, args}};
  const auto model =
      must(graph::GraphModel::load(shared_device(), std::move(graph), all_operators()));
  const auto session = must(graph::GraphSession::create(model, {.poison_activations = true}));
  return values_of<T>(must(session->run(inputs)).at(0).bytes);
}
std::vector<float> run_floats(const std::string& name, const std::vector<Operand>& operands,
                              std::vector<pte::GraphValue> scalars = {}) {
  return run<float>(name, operands, std::move(scalars), GraphDtype::float32);
}

// NaN where NaN is wanted, infinities as they are, else within rel or abs.
void check_floats(const std::vector<float>& got, const std::vector<double>& want,
                  double tolerance = 1e-5) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CAPTURE(got[i]);
    CAPTURE(want[i]);
    if (std::isnan(want[i])) {
      CHECK(std::isnan(got[i]));
    } else if (std::isinf(want[i])) {
      CHECK(got[i] == static_cast<float>(want[i]));
    } else {
      CHECK(std::abs(got[i] - want[i]) <= tolerance * std::max(1.0, std::abs(want[i])));
    }
  }
}

TEST_CASE("pow: the special cases of IEEE 754") {
  const std::vector<float> bases = {0,     -0.0f,     1,          -1,   2,  -2, 0.5f,
                                    -1.5f, kInfinity, -kInfinity, kNan, 10, -3};
  const std::vector<float> exponents = {0,    1,    2,     3,         -1,         -2,  -3,
                                        0.5f, 2.5f, -0.5f, kInfinity, -kInfinity, kNan};
  std::vector<float> a;
  std::vector<float> b;
  std::vector<double> want;
  for (const float x : bases) {
    for (const float y : exponents) {
      a.push_back(x);
      b.push_back(y);
      want.push_back(std::pow(static_cast<double>(x), static_cast<double>(y)));
    }
  }
  check_floats(run_floats("aten.pow.Tensor_Tensor", {floats(a), floats(b)}), want);
}

TEST_CASE("pow of integers wraps, and below 0 keeps only what 1 and -1 give") {
  CHECK(run<int32_t>(
            "aten.pow.Tensor_Tensor",
            {ints({3, -2, 7, 46341, 0, 1, -1, -1, 5}), ints({4, 31, 0, 2, 0, -3, -3, -2, -1})}, {},
            GraphDtype::int32) == std::vector<int32_t>{81, std::numeric_limits<int32_t>::min(), 1,
                                                       -2147479015, 1, 1, -1, 1, 0});
}

TEST_CASE("floor and trunc division agree with PyTorch next to integers") {
  // 1 / float(0.1) is a little below 10, and rounds to 10.
  const std::vector<float> a = {1, -1, 6, -6, 7, -7, 7, 1, 0.3f, 2, 1e6f, -5, 0, 3, 0, kInfinity};
  const std::vector<float> b = {0.1f, 0.1f, 3, 3,         2, 2, -2, 3,
                                0.1f, 0.7f, 3, kInfinity, 4, 0, 0,  2};
  check_floats(run_floats("aten.div.Tensor_mode", {floats(a), floats(b)}, {std::string("floor")}),
               {9, -10, 2, -2, 3, -4, -4, 0, 3, 2, 333333, -1, 0, kInfinity, kNan, kNan}, 0);
  check_floats(run_floats("aten.div.Tensor_mode", {floats(a), floats(b)}, {std::string("trunc")}),
               {10, -10, 2, -2, 3, -3, -3, 0, 3, 2, 333333, 0, 0, kInfinity, kNan, kInfinity}, 0);
}

TEST_CASE("division by what gives whole numbers is whole, over many pairs") {
  std::vector<float> a;
  std::vector<float> b;
  std::vector<double> floor;
  std::vector<double> trunc;
  for (int i = 1; i <= 60; ++i) {
    for (int j = 1; j <= 60; ++j) {
      const float x = static_cast<float>((i - 30) * j) * 0.7f;
      const float y = static_cast<float>(j) * 0.7f;
      a.push_back(x);
      b.push_back(y);
      floor.push_back(std::floor(static_cast<double>(x) / static_cast<double>(y)));
      trunc.push_back(std::trunc(x / y));
    }
  }
  check_floats(run_floats("aten.div.Tensor_mode", {floats(a), floats(b)}, {std::string("floor")}),
               floor, 0);
  check_floats(run_floats("aten.div.Tensor_mode", {floats(a), floats(b)}, {std::string("trunc")}),
               trunc, 0);
}

TEST_CASE("minimum and clamping let NaN through") {
  check_floats(run_floats("aten.minimum.default",
                          {floats({1, kNan, 2, kNan, -kInfinity}), floats({2, 1, kNan, kNan, 0})}),
               {1, kNan, kNan, kNan, -kInfinity});
  check_floats(run_floats("aten.clamp.default", {floats({kNan, -kInfinity, 5, kInfinity})},
                          {-1.0, pte::Null{}}),
               {kNan, -1, 5, kInfinity});
  check_floats(run_floats("aten.relu.default", {floats({kNan, -1, 2})}), {kNan, 0, 2});
}

TEST_CASE("functions of large and special arguments") {
  const std::vector<float> x = {-kInfinity, -1e30f, -500,  -89,       -20, 20,
                                89,         500,    1e30f, kInfinity, kNan};
  check_floats(run_floats("aten.tanh.default", {floats(x)}),
               {-1, -1, -1, -1, -1, 1, 1, 1, 1, 1, kNan});
  check_floats(run_floats("aten.sigmoid.default", {floats(x)}),
               {0, 0, 0, 0, 0, 1, 1, 1, 1, 1, kNan});
  check_floats(run_floats("aten.gelu.default", {floats({-1e30f, -500, -89, -20, 20, 500, 1e30f})},
                          {std::string("none")}),
               {0, 0, 0, 0, 20, 500, 1e30f});
  check_floats(run_floats("aten.gelu.default", {floats({-1e30f, -500, -89, -20, 20, 500, 1e30f})},
                          {std::string("tanh")}),
               {0, 0, 0, 0, 20, 500, 1e30f});
  check_floats(run_floats("aten.exp.default", {floats({-1000, -20, 0, 80, 1000})}),
               {0, std::exp(-20.0), 1, std::exp(80.0), kInfinity}, 5e-5);
}

TEST_CASE("sin and cos stay exact for positions of thousands and millions") {
  std::vector<float> x;
  std::vector<double> sines;
  std::vector<double> cosines;
  for (int i = 0; i < 2000; ++i) {
    const float value = static_cast<float>(i - 1000) * (i % 3 == 0   ? 0.0137f
                                                        : i % 3 == 1 ? 17.3f
                                                                     : 9871.7f);
    x.push_back(value);
    sines.push_back(std::sin(static_cast<double>(value)));
    cosines.push_back(std::cos(static_cast<double>(value)));
  }
  check_floats(run_floats("aten.sin.default", {floats(x)}), sines, 2e-6);
  check_floats(run_floats("aten.cos.default", {floats(x)}), cosines, 2e-6);
}

TEST_CASE("conversions: fractions are dropped, float16 rounds ties to even, NaN is true") {
  const auto convert = [](const Operand& x, GraphDtype to, auto type) {
    return run<decltype(type)>("aten._to_copy.default", {x}, {}, to);
  };
  CHECK(convert(floats({1.9f, -1.9f, 0.5f, -0.0f, 2e9f, -8388609.5f}), GraphDtype::int32,
                int32_t{}) == std::vector<int32_t>{1, -1, 0, 0, 2000000000, -8388610});
  CHECK(convert(floats({0, -0.0f, 1e-30f, kNan, -2}), GraphDtype::boolean, uint8_t{}) ==
        std::vector<uint8_t>{0, 0, 1, 1, 1});
  CHECK(convert(ints({0, -3, 256}), GraphDtype::boolean, uint8_t{}) ==
        std::vector<uint8_t>{0, 1, 1});
  CHECK(convert(floats({1, -2049, 2051, 65519, 65520, 0x1p-24f, 0x1p-25f, 0x1.8p-24f, -kInfinity}),
                GraphDtype::float16, uint16_t{}) ==
        std::vector<uint16_t>{0x3c00, 0xe800, 0x6802, 0x7bff, 0x7c00, 1, 0, 2, 0xfc00});
  check_floats(
      convert(operand<uint16_t>(GraphDtype::float16, {0x3c00, 0xc000, 0x7bff, 0x0400, 0x7c00}),
              GraphDtype::float32, float{}),
      {1, -2, 65504, 0x1p-14, kInfinity}, 0);
  CHECK(convert(operand<int8_t>(GraphDtype::int8, {-128, -1, 0, 127, 5}), GraphDtype::int32,
                int32_t{}) == std::vector<int32_t>{-128, -1, 0, 127, 5});
  CHECK(convert(operand<uint8_t>(GraphDtype::uint8, {255, 0, 7}), GraphDtype::int32, int32_t{}) ==
        std::vector<int32_t>{255, 0, 7});
  CHECK(convert(operand<uint8_t>(GraphDtype::boolean, {1, 0, 1, 1, 0}), GraphDtype::float32,
                float{}) == std::vector<float>{1, 0, 1, 1, 0});
}

TEST_CASE("integers against a scalar, beyond what float32 and int32 hold") {
  const Operand x = ints({16777216, 16777217, -2147483647 - 1, 2147483647, 0});
  const auto compare = [&](const char* name, double number) {
    return run<uint8_t>(name, {x}, {number}, GraphDtype::boolean);
  };
  CHECK(compare("aten.eq.Scalar", 16777217) == std::vector<uint8_t>{0, 1, 0, 0, 0});
  CHECK(compare("aten.ne.Scalar", 16777217) == std::vector<uint8_t>{1, 0, 1, 1, 1});
  CHECK(compare("aten.lt.Scalar", 1e12) == std::vector<uint8_t>{1, 1, 1, 1, 1});
  CHECK(compare("aten.ge.Scalar", 1e12) == std::vector<uint8_t>{0, 0, 0, 0, 0});
  CHECK(compare("aten.ne.Scalar", 0.5) == std::vector<uint8_t>{1, 1, 1, 1, 1});
  CHECK(compare("aten.gt.Scalar", -0.5) == std::vector<uint8_t>{1, 1, 0, 1, 1});
}

TEST_CASE("where moves elements of every size") {
  const Operand condition = operand<uint8_t>(GraphDtype::boolean, {1, 0, 0, 1, 1});
  CHECK(run<uint16_t>("aten.where.self",
                      {condition, operand<uint16_t>(GraphDtype::float16, {1, 2, 3, 4, 5}),
                       operand<uint16_t>(GraphDtype::float16, {6, 7, 8, 9, 10})},
                      {}, GraphDtype::float16) == std::vector<uint16_t>{1, 7, 8, 4, 5});
  CHECK(run<uint8_t>("aten.where.self",
                     {condition, operand<uint8_t>(GraphDtype::boolean, {1, 1, 1, 0, 1}),
                      operand<uint8_t>(GraphDtype::boolean, {0, 0, 1, 1, 0})},
                     {}, GraphDtype::boolean) == std::vector<uint8_t>{1, 0, 1, 0, 1});
}

}  // namespace
}  // namespace ptero::ops
