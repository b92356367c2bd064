// SPDX-License-Identifier: BSD-3-Clause
#include "ops/shape/shape_test_model.h"

namespace ptero::ops {
namespace {

using namespace shape_testing;

TEST_CASE("permute: every type, odd sizes") {
  for (const GraphDtype dtype : kAllTypes) {
    const GraphBuilder g =
        unary("aten.permute_copy.default", {3, 5, 7}, {pte::IntList{{2, 0, -2}}}, {7, 3, 5}, dtype);
    CHECK(run(g, {}, {{7, 3, 5}}).outputs[0] ==
          by_coordinates({7, 3, 5}, [](const Dims& at) { return at[1] * 35 + at[2] * 7 + at[0]; }));
  }
}

TEST_CASE("permute: eight dimensions, none of which join") {
  const Dims dims = {2, 1, 3, 2, 2, 1, 2, 2};
  const GraphBuilder g =
      unary("aten.permute.default", dims, {pte::IntList{{7, 6, 5, 4, 3, 2, 1, 0}}},
            {2, 2, 1, 2, 2, 3, 1, 2}, GraphDtype::int8);
  CHECK(run(g, {}, {{2, 2, 1, 2, 2, 3, 1, 2}}).outputs[0] ==
        by_coordinates({2, 2, 1, 2, 2, 3, 1, 2}, [&](const Dims& at) {
          uint32_t index = 0;
          for (size_t axis = 0; axis < 8; ++axis) {
            index = index * dims[axis] + at[7 - axis];
          }
          return index;
        }));
}

TEST_CASE("permute: whole words where bytes stay together") {
  const GraphBuilder g = unary("aten.permute_copy.default", {2, 3, 8}, {pte::IntList{{1, 0, 2}}},
                               {3, 2, 8}, GraphDtype::int8);
  const Run r = run(g, {}, {{3, 2, 8}});
  CHECK(r.planned.dispatch(0).kernel.source == &wgsl::kStridedCopy);
  CHECK(r.outputs[0] ==
        by_coordinates({3, 2, 8}, [](const Dims& at) { return at[1] * 24 + at[0] * 8 + at[2]; }));
}

TEST_CASE("permute: wrong axes") {
  const auto text = [](std::vector<int64_t> axes) {
    return failure(
        unary("aten.permute_copy.default", {3, 5}, {pte::IntList{std::move(axes)}}, {5, 3}));
  };
  CHECK(text({0, 0}) == "Axis (0) is named twice.");
  CHECK(text({1, -1}) == "Axis (1) is named twice.");
  CHECK(text({1}) == "Number of axes (1) of a permutation differs from the tensor's rank (2).");
  CHECK(text({1, 2}) == "Axis (2) lies outside a tensor of rank 2.");
}

TEST_CASE("slice: starts, ends and steps as in Python") {
  struct Row {
    pte::GraphValue start, end, step;
    Numbers expected;
  };
  const Row rows[] = {
      {int64_t{1}, kEnd, int64_t{1}, {1, 2, 3, 4, 5, 6}},
      {int64_t{-2}, kEnd, int64_t{1}, {5, 6}},
      {int64_t{1}, int64_t{6}, int64_t{2}, {1, 3, 5}},
      {int64_t{0}, int64_t{7}, int64_t{3}, {0, 3, 6}},
      {pte::Null{}, pte::Null{}, pte::Null{}, {0, 1, 2, 3, 4, 5, 6}},
      {1.0, 3.0, 1.0, {1, 2}},
      {int64_t{-100}, int64_t{-5}, int64_t{1}, {0, 1}},
      {int64_t{5}, int64_t{2}, int64_t{1}, {}},
      {int64_t{7}, kEnd, int64_t{1}, {}},
      {int64_t{2}, kEnd, kEnd, {2}},
      {int64_t{INT64_MIN}, kEnd, int64_t{6}, {0, 6}},
  };
  for (const GraphDtype dtype : kAllTypes) {
    for (const Row& row : rows) {
      const GraphBuilder g = unary("aten.slice_copy.Tensor", {7},
                                   {int64_t{0}, row.start, row.end, row.step}, {7}, dtype);
      const Run r = run(g, {}, {{static_cast<uint32_t>(row.expected.size())}});
      CHECK(r.outputs[0] == row.expected);
      CHECK(r.planned.plan->dispatches() == (row.expected.empty() ? 0 : 1));
    }
  }
  CHECK(failure(unary("aten.slice_copy.Tensor", {7}, {int64_t{0}, int64_t{0}, kEnd, int64_t{0}},
                      {7})) == "Step (0) of a slice is less than 1.");
}

TEST_CASE("slice: rows of whole words out of rows that are not") {
  for (const GraphDtype dtype : kAllTypes) {
    const GraphBuilder g = unary("aten.slice_copy.Tensor", {3, 5},
                                 {int64_t{1}, int64_t{0}, int64_t{4}, int64_t{1}}, {3, 4}, dtype);
    CHECK(run(g, {}, {{3, 4}}).outputs[0] == Numbers{0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13});
  }
}

TEST_CASE("slice: a start that moves is read by the kernel, one plan for all") {
  GraphBuilder g;
  const uint32_t x = g.tensor({3, 9, 4}, GraphDtype::int8);
  const uint32_t start = g.add(pte::SymInt{});
  g.inputs({x, start});
  const uint32_t end = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({3, 9, 4}, GraphDtype::int8);
  g.call("add", {start, g.add(int64_t{2}), end});
  g.call("aten.slice_copy.Tensor", {x, g.add(int64_t{-2}), start, end, g.add(int64_t{1}), y});
  g.outputs({y});
  const auto memory = graph::plan_memory(g.graph(), all_operators());
  REQUIRE(memory.ok());
  graph::Planner planner(g.graph(), *memory, all_operators(), graph::testing::default_device());
  const auto run = [&](int64_t at, uint32_t length = 5) {
    return planner.plan(std::vector<graph::LiveInput>{{{3, length, 4}, 0}, {{}, at}});
  };
  const auto first = run(2);
  REQUIRE(first.ok());
  CHECK(first->plan->output_shapes[0] == Shape{3, 2, 4});
  CHECK(first->plan->scalars_read.empty());
  CHECK(planner.slots(*first)[*memory->slots.slot_of[start]] == 2);
  const uint64_t calls = planner.operator_calls();
  const auto second = run(3);
  REQUIRE(second.ok());
  CHECK(second->plan == first->plan);
  CHECK(planner.slots(*second)[*memory->slots.slot_of[start]] == 3);
  CHECK(planner.operator_calls() == calls);
  CHECK(run(4).error().message() ==
        "Argument 2 (4) of operator 1 (aten.slice_copy.Tensor) does not lie between 0 and 3.");
  CHECK(run(4, 6).ok());
  CHECK(run(-1).error().code() == ErrorCode::invalid_argument);
  CHECK(run(0, 1).error().message() ==
        "Length (2) of a slice exceeds dimension 1 of a tensor [3, 1, 4].");
}

TEST_CASE("slice: symbolic ends that make a shape") {
  GraphBuilder g;
  const uint32_t x = g.tensor({3, 9, 2}, GraphDtype::int8);
  const uint32_t start = g.add(pte::SymInt{});
  g.inputs({x, start});
  const uint32_t end = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({3, 9, 2}, GraphDtype::int8);
  g.call("mul", {start, g.add(int64_t{2}), end});
  g.call("aten.slice_copy.Tensor", {x, g.add(int64_t{-2}), start, end, g.add(int64_t{1}), y});
  g.outputs({y});
  const auto memory = graph::plan_memory(g.graph(), all_operators());
  REQUIRE(memory.ok());
  graph::Planner planner(g.graph(), *memory, all_operators(), graph::testing::default_device());
  const auto run = planner.plan(std::vector<graph::LiveInput>{{{3, 5, 2}, 0}, {{}, 2}});
  REQUIRE(run.ok());
  CHECK(run->plan->output_shapes[0] == Shape{3, 2, 2});
  const auto past = planner.plan(std::vector<graph::LiveInput>{{{3, 5, 2}, 0}, {{}, 4}});
  REQUIRE(past.ok());
  CHECK(past->plan->output_shapes[0] == Shape{3, 1, 2});
}

TEST_CASE("select: each axis, from either end of the live length") {
  const auto g = [](int64_t axis, pte::GraphValue index, const Dims& y) {
    return unary("aten.select_copy.int", {3, 5, 7}, {axis, std::move(index)}, y, GraphDtype::int8);
  };
  CHECK(run(g(0, int64_t{1}, {5, 7}), {}, {{5, 7}}).outputs[0] == iota(35, 35));
  CHECK(run(g(1, int64_t{-1}, {3, 7}), {{3, 4, 7}}, {{3, 7}}).outputs[0] ==
        by_coordinates({3, 7}, [](const Dims& at) { return at[0] * 28 + 21 + at[1]; }));
  CHECK(run(g(-1, 3.0, {3, 5}), {}, {{3, 5}}).outputs[0] ==
        by_coordinates({3, 5}, [](const Dims& at) { return at[0] * 35 + at[1] * 7 + 3; }));
  CHECK(failure(g(1, int64_t{4}, {3, 7}), {{3, 4, 7}}) ==
        "Index (4) lies outside dimension 1 of a tensor [3, 4, 7].");
  CHECK(failure(g(1, int64_t{-5}, {3, 7}), {{3, 4, 7}}) ==
        "Index (-5) lies outside dimension 1 of a tensor [3, 4, 7].");
}

TEST_CASE("split: parts at any alignment; sizes must be the whole") {
  for (const GraphDtype dtype : kAllTypes) {
    const auto g = [&](std::vector<int64_t> sizes, size_t results) {
      GraphBuilder b;
      const uint32_t x = b.input({3, 7}, dtype);
      std::vector<uint32_t> parts;
      for (size_t i = 0; i < results; ++i) {
        parts.push_back(b.tensor({3, 7}, dtype));
      }
      b.call("aten.split_with_sizes_copy.default",
             {x, b.integers(std::move(sizes)), b.add(int64_t{-1}), b.list(parts)});
      b.outputs(parts);
      return b;
    };
    const Run r = run(g({1, 4, 0, 2}, 4), {}, {{3, 1}, {3, 4}, {3, 0}, {3, 2}});
    CHECK(r.outputs[0] == Numbers{0, 7, 14});
    CHECK(r.outputs[1] == Numbers{1, 2, 3, 4, 8, 9, 10, 11, 15, 16, 17, 18});
    CHECK(r.outputs[3] == Numbers{5, 6, 12, 13, 19, 20});
    CHECK(r.planned.plan->dispatches() == 3);
    CHECK(failure(g({1, 4, 2}, 2)) ==
          "Number of results (2) differs from the number of sizes (3).");
    CHECK(failure(g({1, 4}, 2)) == "Sizes of a split (5 together) leave part of dimension 1 (7).");
    CHECK(failure(g({4, 4}, 2)) ==
          "Size 1 (4) of a split does not lie between 0 and what is left of dimension 1 (3).");
    CHECK_FALSE(failure(g({-1, 8}, 2)) == "(no error)");
  }
}

GraphBuilder cat(const std::vector<Dims>& parts, int64_t axis, const Dims& y, GraphDtype dtype) {
  GraphBuilder g;
  std::vector<uint32_t> ids;
  for (const Dims& part : parts) {
    ids.push_back(g.input(part, dtype));
  }
  const uint32_t out = g.tensor(y, dtype);
  g.call("aten.cat.default", {g.list(ids), g.add(axis), out});
  g.outputs({out});
  return g;
}

TEST_CASE("cat: along each axis, bytes that share words with their neighbours too") {
  for (const GraphDtype dtype : kAllTypes) {
    const Run rows = run(cat({{2, 3}, {1, 3}}, 0, {3, 3}, dtype), {}, {{3, 3}});
    CHECK(rows.outputs[0] == Numbers{0, 1, 2, 3, 4, 5, 100, 101, 102});
    CHECK(rows.planned.plan->dispatches() == 2);
    const Run columns = run(cat({{2, 1}, {2, 3}, {2, 2}}, -1, {2, 6}, dtype), {}, {{2, 6}});
    CHECK(columns.outputs[0] == Numbers{0, 100, 101, 102, 200, 201,  //
                                        1, 103, 104, 105, 202, 203});
    // Rows of whole words at places that are not, and in rows that are not.
    CHECK(run(cat({{2, 4}, {2, 1}}, 1, {2, 5}, dtype), {}, {{2, 5}}).outputs[0] ==
          Numbers{0, 1, 2, 3, 100, 4, 5, 6, 7, 101});
    CHECK(run(cat({{1, 1}, {1, 4}, {1, 3}}, 1, {1, 8}, dtype), {}, {{1, 8}}).outputs[0] ==
          Numbers{0, 100, 101, 102, 103, 200, 201, 202});
    // Live lengths below the bounds, the first part empty in PyTorch's old manner.
    const Run live =
        run(cat({{0}, {9, 2}, {9, 2}}, 0, {18, 2}, dtype), {{0}, {1, 2}, {2, 2}}, {{3, 2}});
    CHECK(live.outputs[0] == Numbers{100, 101, 200, 201, 202, 203});
    CHECK(live.planned.plan->dispatches() == 2);
  }
}

TEST_CASE("cat: whole words when every row is made of them") {
  const Run r = run(cat({{2, 4}, {2, 8}}, 1, {2, 12}, GraphDtype::int8), {}, {{2, 12}});
  CHECK(r.planned.dispatch(1).kernel.source == &wgsl::kConcatRows);
  CHECK(r.outputs[0] == Numbers{0, 1, 2, 3, 100, 101, 102, 103, 104, 105, 106, 107,
                                4, 5, 6, 7, 108, 109, 110, 111, 112, 113, 114, 115});
}

TEST_CASE("cat: shapes and types that do not fit") {
  CHECK(failure(cat({{2, 3}, {2, 4}}, 0, {4, 3}, GraphDtype::int32)) ==
        "Shapes [2, 3] and [2, 4] cannot be joined along axis 0.");
  CHECK(failure(cat({{2, 3}, {3}}, 0, {4, 3}, GraphDtype::int32)) ==
        "Shapes [2, 3] and [3] cannot be joined along axis 0.");
  CHECK(failure(cat({{2, 3}, {2, 3}}, 0, {3, 3}, GraphDtype::int32)) ==
        "Dimension 0 (4) of the result [4, 3] exceeds the bound of the file (3).");
  GraphBuilder g = cat({{2}, {2}}, 0, {4}, GraphDtype::int32);
  g.tensor_at(1).dtype = GraphDtype::float32;
  CHECK_FALSE(failure(g) == "(no error)");
}

}  // namespace
}  // namespace ptero::ops
