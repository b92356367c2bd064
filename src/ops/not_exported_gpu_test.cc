// SPDX-License-Identifier: BSD-3-Clause
// Operators that files may hold and that today's exporter writes as others, so that no exported
// model shows them: each on a device, against numbers by hand. docs/operators.md lists these cases.
#include <cstdint>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "graph/model.h"
#include "graph/session.h"
#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using graph::Shape;
using graph::testing::Dims;
using graph::testing::GraphBuilder;
using pte::GraphDtype;

template <typename T>
std::vector<T> run(const GraphBuilder& g, const std::vector<std::vector<float>>& inputs) {
  static const gpu::Device device = open_device();
  const auto model = must(graph::GraphModel::load(device, g.graph(), all_operators()));
  const auto session = must(graph::GraphSession::create(model, {.poison_activations = true}));
  std::vector<graph::RunInput> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& tensor = std::get<pte::GraphTensor>(g.graph().values[g.graph().inputs[i]]);
    given.push_back({{must(Shape::from(tensor.dims)), 0}, std::as_bytes(std::span(inputs[i]))});
  }
  return values_of<T>(must(session->run(given)).at(0).bytes);
}

const std::vector<float> kSix = {1.5f, -2.25f, 0, 7.75f, -0.5f, 100};

TEST_CASE("operator aten.alias_copy.default, dim_order_ops._clone_dim_order.default") {
  for (const char* name : {"aten.alias_copy.default", "dim_order_ops._clone_dim_order.default"}) {
    GraphBuilder g;
    const uint32_t x = g.input({2, 3});
    const uint32_t y = g.tensor({2, 3});
    const uint32_t z = g.tensor({2, 3});
    std::vector<uint32_t> args = {x};
    if (std::string_view(name) != "aten.alias_copy.default") {
      args.insert(args.end(), {g.add(false), g.add(pte::Null{})});
    }
    args.push_back(y);
    g.call(name, args);
    g.call("aten.neg.default", {y, z});
    g.outputs({z});
    CHECK(run<float>(g, {kSix}) == std::vector<float>{-1.5f, 2.25f, 0, -7.75f, 0.5f, -100});
  }
}

TEST_CASE("operator aten._to_copy.default") {
  GraphBuilder g;
  const uint32_t x = g.input({6});
  const uint32_t y = g.tensor({6}, GraphDtype::int32);
  g.call("aten._to_copy.default", {x, g.add(int64_t{3}), y});
  g.outputs({y});
  CHECK(run<int32_t>(g, {kSix}) == std::vector<int32_t>{1, -2, 0, 7, 0, 100});
}

TEST_CASE("operator aten.ne.Tensor") {
  GraphBuilder g;
  const uint32_t a = g.input({6});
  const uint32_t b = g.input({1});
  const uint32_t y = g.tensor({6}, GraphDtype::boolean);
  g.call("aten.ne.Tensor", {a, b, y});
  g.outputs({y});
  CHECK(run<uint8_t>(g, {kSix, {-0.5f}}) == std::vector<uint8_t>{1, 1, 1, 1, 0, 1});
}

TEST_CASE("operator aten.permute.default") {
  GraphBuilder g;
  const uint32_t x = g.input({2, 3});
  const uint32_t y = g.tensor({3, 2});
  g.call("aten.permute.default", {x, g.integers({1, 0}), y});
  g.outputs({y});
  CHECK(run<float>(g, {kSix}) == std::vector<float>{1.5f, 7.75f, -2.25f, -0.5f, 0, 100});
}

TEST_CASE(
    "operator aten.ones.default, aten.ones_like.default, aten.zeros.default, "
    "aten.zeros_like.default, aten.scalar_tensor.default") {
  const auto filled = [](const char* name, bool like, const Dims& dims, bool scalar = false) {
    GraphBuilder g;
    const uint32_t x = g.input({2, 3});
    const uint32_t y = g.tensor(dims);
    if (scalar) {
      g.call(name, {g.add(2.5), y});
    } else {
      g.call(name, {like ? x : g.integers({2, 3}), y});
    }
    g.outputs({y});
    return run<float>(g, {kSix});
  };
  CHECK(filled("aten.ones.default", false, {2, 3}) == std::vector<float>(6, 1));
  CHECK(filled("aten.ones_like.default", true, {2, 3}) == std::vector<float>(6, 1));
  CHECK(filled("aten.zeros.default", false, {2, 3}) == std::vector<float>(6, 0));
  CHECK(filled("aten.zeros_like.default", true, {2, 3}) == std::vector<float>(6, 0));
  CHECK(filled("aten.scalar_tensor.default", false, {}, true) == std::vector<float>{2.5f});
}

}  // namespace
}  // namespace ptero::ops
