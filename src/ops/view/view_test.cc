// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using graph::testing::Dims;
using graph::testing::GraphBuilder;
using graph::testing::Planned;

// x -> view -> y, y an output. The bounds of x and y are the file's.
GraphBuilder view(const char* name, const Dims& x, std::vector<pte::GraphValue> arguments,
                  const Dims& y) {
  GraphBuilder g;
  std::vector<uint32_t> args = {g.input(x)};
  for (pte::GraphValue& argument : arguments) {
    args.push_back(g.add(std::move(argument)));
  }
  args.push_back(g.tensor(y));
  g.outputs({args.back()});
  g.call(name, args);
  return g;
}

// The live shape of y, or the error.
std::string outcome(const GraphBuilder& g, std::vector<Shape> live = {}) {
  const Result<Planned> planned = graph::testing::plan_graph(g, all_operators(), std::move(live));
  if (!planned.ok()) {
    return planned.error().message();
  }
  CHECK(planned->memory.aliases == std::vector<bool>{true});
  CHECK(planned->plan->commands.empty());  // no work at all
  return to_string(planned->plan->output_shapes[0]);
}

TEST_CASE("view_copy: the live shape comes from the sizes") {
  const auto g = [](std::vector<int64_t> sizes, const Dims& y) {
    return view("aten.view_copy.default", {9, 8}, {pte::IntList{std::move(sizes)}}, y);
  };
  CHECK(outcome(g({8, 9}, {8, 9})) == "[8, 9]");
  CHECK(outcome(g({-1}, {72}), {{5, 8}}) == "[40]");
  // The file's bounds would fit a guess of [5, 2, 4] and of [9, ...] alike: -1 says which.
  CHECK(outcome(g({-1, 2, 4}, {9, 2, 4}), {{5, 8}}) == "[5, 2, 4]");
  CHECK(outcome(g({2, -1, 4}, {2, 9, 4}), {{4, 8}}) == "[2, 4, 4]");
  CHECK(outcome(g({9, 8}, {9, 8}), {{5, 8}}) == "A tensor [5, 8] has no view of sizes [9, 8].");
  CHECK(outcome(g({-1, 7}, {10, 7}), {{5, 8}}) == "A tensor [5, 8] has no view of sizes [-1, 7].");
  CHECK(outcome(g({-1, 0}, {9, 0})) == "A tensor [9, 8] has no view of sizes [-1, 0].");
  CHECK(outcome(g({-1, -1}, {9, 8})) == "Sizes of a view have -1 twice.");
  CHECK(outcome(g({-2, 8}, {9, 8})) == "Size (-2) of a view is neither -1 nor a dimension.");
  const int64_t big = int64_t{1} << 32;
  CHECK_FALSE(outcome(g({big, 8}, {9, 8})) == "[9, 8]");
  // 2^31 three times is 2^93, which wraps to 0 in 64 bits.
  CHECK(outcome(g({big / 2, big / 2, big / 2}, {9, 8, 1})) ==
        "A tensor [9, 8] has no view of sizes [2147483648, 2147483648, 2147483648].");
  CHECK_FALSE(outcome(g({1, 1, 1, 1, 1, 1, 1, 9, 8}, {9, 8})) == "[9, 8]");
}

TEST_CASE("view_copy: sizes that depend on a live size") {
  GraphBuilder g;
  const uint32_t x = g.input({1, 63, 256});
  const uint32_t seq = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({1, 63, 8, 32});
  g.call("sym_size.int", {x, g.add(int64_t{1}), seq});
  g.call("aten.view_copy.default",
         {x, g.list({g.add(int64_t{1}), seq, g.add(int64_t{8}), g.add(32.0)}), y});
  g.outputs({y});
  const auto planned = graph::testing::plan_graph(g, all_operators(), {{1, 7, 256}});
  REQUIRE(planned.ok());
  CHECK(planned->plan->output_shapes[0] == Shape{1, 7, 8, 32});
}

TEST_CASE("squeeze_copy.dims: drops what is 1 in the file, not what happens to be 1 now") {
  const auto g = [](std::vector<int64_t> dims, const Dims& y) {
    return view("aten.squeeze_copy.dims", {9, 1, 5, 1}, {pte::IntList{std::move(dims)}}, y);
  };
  CHECK(outcome(g({1}, {9, 5, 1})) == "[9, 5, 1]");
  CHECK(outcome(g({1, -1}, {9, 5})) == "[9, 5]");
  CHECK(outcome(g({0, 3}, {9, 1, 5}), {{1, 1, 5, 1}}) == "[1, 1, 5]");
  CHECK(outcome(g({2}, {9, 1, 5, 1})) == "[9, 1, 5, 1]");
  CHECK(outcome(g({4}, {9, 5, 1})) == "Axis (4) lies outside a tensor of rank 4.");
}

TEST_CASE("unsqueeze_copy: in front, within, behind") {
  const auto g = [](int64_t dim, const Dims& y) {
    return view("aten.unsqueeze_copy.default", {9, 5}, {dim}, y);
  };
  CHECK(outcome(g(0, {1, 9, 5}), {{3, 5}}) == "[1, 3, 5]");
  CHECK(outcome(g(1, {9, 1, 5})) == "[9, 1, 5]");
  CHECK(outcome(g(-1, {9, 5, 1})) == "[9, 5, 1]");
  CHECK(outcome(g(-3, {1, 9, 5})) == "[1, 9, 5]");
  CHECK(outcome(g(3, {9, 5, 1})) == "Axis (3) lies outside a tensor of rank 3.");
  CHECK_FALSE(outcome(view("aten.unsqueeze_copy.default", Dims(8, 1), {int64_t{0}}, Dims(8, 1))) ==
              "[1, 1, 1, 1, 1, 1, 1, 1]");
}

TEST_CASE("clone and its like: the live shape, whatever the layout arguments say") {
  CHECK(outcome(view("aten.clone.default", {9, 5}, {pte::Null{}}, {9, 5}), {{3, 5}}) == "[3, 5]");
  CHECK(outcome(view("aten.clone.default", {9, 5}, {}, {9, 5})) == "[9, 5]");
  CHECK(outcome(view("aten.alias_copy.default", {9, 5}, {}, {9, 5}), {{3, 5}}) == "[3, 5]");
  CHECK(outcome(view("dim_order_ops._clone_dim_order.default", {9, 5},
                     {false, pte::IntList{{0, 1}}}, {9, 5}),
                {{3, 5}}) == "[3, 5]");
}

TEST_CASE("views keep the element type") {
  GraphBuilder g = view("aten.clone.default", {9}, {pte::Null{}}, {9});
  g.tensor_at(2).dtype = pte::GraphDtype::int32;
  CHECK(graph::testing::plan_graph(g, all_operators()).error().code() == ErrorCode::unsupported);
}

TEST_CASE("prepack: a constant is used where it lies") {
  GraphBuilder g;
  const uint32_t weight = g.constant("w", {5, 3});
  const uint32_t packed = g.tensor({5, 3});
  g.call("et_vk.prepack.default", {weight, packed});
  g.outputs({packed});
  const auto planned = graph::testing::plan_graph(g, all_operators());
  REQUIRE(planned.ok());
  CHECK(planned->plan->commands.empty());
  CHECK(planned->memory.storage_of[packed] == planned->memory.storage_of[weight]);
  CHECK(planned->memory.bytes(gpu::MemoryKind::weights) == 60);
}

TEST_CASE("views: copied where the memory of the input is needed for something else") {
  GraphBuilder g;
  const uint32_t x = g.in_memory(0, {9, 5});
  g.inputs({x});
  const uint32_t y = g.in_memory(1, {45});
  const uint32_t z = g.in_memory(0, {9, 5});
  g.call("aten.view_copy.default", {x, g.integers({-1}), y});
  g.call("aten.flip.default", {x, g.integers({0}), z});
  g.outputs({y, z});
  // x is read by the flip that writes z into the same memory: the file would be wrong, but the
  // view is still a copy.
  const auto planned = graph::testing::plan_graph(g, all_operators(), {{2, 5}});
  REQUIRE(planned.ok());
  CHECK(planned->copy(0).bytes == 40);
  CHECK(planned->copy(0).source == *planned->memory.storage_of[x]);
  CHECK(planned->copy(0).target == *planned->memory.storage_of[y]);
}

}  // namespace
}  // namespace ptero::ops
