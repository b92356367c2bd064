// SPDX-License-Identifier: BSD-3-Clause
#include "ops/shape/shape_test_model.h"

namespace ptero::ops {
namespace {

using namespace shape_testing;

TEST_CASE("expand: ones repeat, -1 keeps, dimensions come in front") {
  for (const GraphDtype dtype : kAllTypes) {
    const GraphBuilder g = unary("aten.expand_copy.default", {3, 1},
                                 {pte::IntList{{2, -1, 3}}, false}, {2, 3, 3}, dtype);
    CHECK(run(g, {}, {{2, 3, 3}}).outputs[0] ==
          Numbers{0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0, 1, 1, 1, 2, 2, 2});
    CHECK(run(g, {{2, 1}}, {{2, 2, 3}}).outputs[0] == Numbers{0, 0, 0, 1, 1, 1,  //
                                                              0, 0, 0, 1, 1, 1});
  }
  const auto text = [](std::vector<int64_t> sizes) {
    return failure(
        unary("aten.expand_copy.default", {3, 1}, {pte::IntList{std::move(sizes)}}, {3, 7}));
  };
  CHECK(text({4, 7}) == "Dimension 0 of a tensor [3, 1] does not expand to 4.");
  CHECK(text({7}) == "Number of sizes (1) of an expansion is less than the tensor's rank (2).");
  CHECK(text({-1, 3, 7}) == "Size (-1) of a dimension does not lie between 0 and 4294967295.");
}

TEST_CASE("repeat: eight dimensions, all of them repeated, need sixteen axes") {
  for (const GraphDtype dtype : {GraphDtype::int32, GraphDtype::boolean}) {
    const Dims dims(8, 2);
    const GraphBuilder g = unary("aten.repeat.default", dims,
                                 {pte::IntList{{2, 2, 2, 2, 2, 2, 2, 2}}}, Dims(8, 4), dtype);
    const Numbers expected = by_coordinates(Dims(8, 4), [](const Dims& at) {
      uint32_t index = 0;
      for (const uint32_t coordinate : at) {
        index = index * 2 + coordinate % 2;
      }
      return index;
    });
    CHECK(run(g, {}, {{4, 4, 4, 4, 4, 4, 4, 4}}).outputs[0] == expected);
  }
}

TEST_CASE("repeat: new dimensions, none at all, negative") {
  const auto g = [](std::vector<int64_t> repeats, const Dims& y) {
    return unary("aten.repeat.default", {2, 3}, {pte::IntList{std::move(repeats)}}, y);
  };
  CHECK(run(g({2, 1, 2}, {2, 2, 6}), {}, {{2, 2, 6}}).outputs[0] ==
        by_coordinates({2, 2, 6}, [](const Dims& at) { return at[1] * 3 + at[2] % 3; }));
  CHECK(run(g({0, 1}, {2, 3}), {}, {{0, 3}}).planned.plan->commands.empty());
  CHECK_FALSE(failure(g({-1, 1}, {2, 3})) == "(no error)");
  CHECK(failure(g({2}, {4, 3})) == "Number of repeats (1) is less than the tensor's rank (2).");
}

TEST_CASE("flip: each axis and several") {
  for (const GraphDtype dtype : kAllTypes) {
    const GraphBuilder g =
        unary("aten.flip.default", {3, 2, 5}, {pte::IntList{{0, -1}}}, {3, 2, 5}, dtype);
    CHECK(run(g, {}, {{3, 2, 5}}).outputs[0] == by_coordinates({3, 2, 5}, [](const Dims& at) {
            return (2 - at[0]) * 10 + at[1] * 5 + 4 - at[2];
          }));
  }
  CHECK(run(unary("aten.flip.default", {5}, {pte::IntList{{0}}}, {5}), {{2}}, {{2}}).outputs[0] ==
        Numbers{1, 0});
  CHECK(failure(unary("aten.flip.default", {5, 5}, {pte::IntList{{0, -2}}}, {5, 5})) ==
        "Axis (0) is named twice.");
}

GraphBuilder pad(const Dims& x, std::vector<int64_t> amounts, pte::GraphValue value, const Dims& y,
                 GraphDtype dtype) {
  return unary("aten.constant_pad_nd.default", x, {pte::IntList{std::move(amounts)}, value}, y,
               dtype);
}

TEST_CASE("pad: every type, both ends, a negative pad cuts") {
  struct Row {
    GraphDtype dtype;
    pte::GraphValue value;
    uint32_t bits;
  };
  const Row rows[] = {
      {GraphDtype::float32, -1.5, 0xbfc00000},      {GraphDtype::float32, int64_t{1}, 0x3f800000},
      {GraphDtype::int32, int64_t{-2}, 0xfffffffe}, {GraphDtype::float16, -1.5, 0xbe00},
      {GraphDtype::float16, 1e-7, 0x0002},          {GraphDtype::float16, 65519.0, 0x7bff},
      {GraphDtype::float16, 65520.0, 0x7c00},       {GraphDtype::float16, 0.1, 0x2e66},
      {GraphDtype::int8, int64_t{-2}, 0xfe},        {GraphDtype::uint8, 255.0, 0xff},
      {GraphDtype::boolean, int64_t{1}, 1},
  };
  for (const Row& row : rows) {
    const uint32_t f = row.bits;
    CHECK(run(pad({2, 3}, {1, 2, 0, 1}, row.value, {3, 6}, row.dtype), {}, {{3, 6}}).outputs[0] ==
          Numbers{f, 0, 1, 2, f, f,  //
                  f, 3, 4, 5, f, f,  //
                  f, f, f, f, f, f});
    CHECK(run(pad({2, 3}, {-1, 1}, row.value, {2, 3}, row.dtype), {}, {{2, 3}}).outputs[0] ==
          Numbers{1, 2, f, 4, 5, f});
    CHECK(run(pad({2, 3}, {1, -2}, row.value, {2, 2}, row.dtype), {}, {{2, 2}}).outputs[0] ==
          Numbers{f, 0, f, 3});
    CHECK(run(pad({4}, {0, 4}, row.value, {8}, row.dtype), {}, {{8}}).outputs[0] ==
          Numbers{0, 1, 2, 3, f, f, f, f});
    CHECK(run(pad({2}, {-1, 0}, row.value, {1}, row.dtype), {}, {{1}}).outputs[0] == Numbers{1});
    CHECK(run(pad({2, 3}, {}, row.value, {2, 3}, row.dtype), {}, {{2, 3}}).outputs[0] == iota(6));
  }
}

TEST_CASE("pad: all that is left is padding") {
  CHECK(run(pad({3}, {-3, 2}, int64_t{7}, {2}, GraphDtype::int32), {}, {{2}}).outputs[0] ==
        Numbers{7, 7});
  CHECK(run(pad({0}, {1, 1}, int64_t{7}, {2}, GraphDtype::int32), {}, {{2}}).outputs[0] ==
        Numbers{7, 7});
  CHECK(run(pad({3}, {-2, -1}, int64_t{7}, {3}, GraphDtype::int32), {}, {{0}})
            .planned.plan->commands.empty());
}

TEST_CASE("pad: wrong amounts and values") {
  const auto text = [](std::vector<int64_t> amounts, pte::GraphValue value) {
    return failure(pad({2, 3}, std::move(amounts), std::move(value), {9, 9}, GraphDtype::int8));
  };
  CHECK(text({1}, int64_t{0}) ==
        "Number of pads (1) is odd or exceeds twice the tensor's rank (2).");
  CHECK(text({0, 0, 0, 0, 0, 0}, int64_t{0}) ==
        "Number of pads (6) is odd or exceeds twice the tensor's rank (2).");
  CHECK(text({-2, -2}, int64_t{0}) == "Pads (-2 and -2) make no length of dimension 1 (3).");
  CHECK_FALSE(text({kEnd, kEnd}, int64_t{0}) == "(no error)");
  CHECK_FALSE(text({INT64_MIN, 0}, int64_t{0}) == "(no error)");
  CHECK_FALSE(text({1, 0}, int64_t{128}) == "(no error)");
  CHECK_FALSE(text({1, 0}, 0.5) == "(no error)");
}

TEST_CASE("pixel_shuffle: blocks of channels become blocks of pixels") {
  for (const GraphDtype dtype : kAllTypes) {
    const GraphBuilder g =
        unary("aten.pixel_shuffle.default", {1, 8, 3, 2}, {int64_t{2}}, {1, 2, 6, 4}, dtype);
    CHECK(run(g, {}, {{1, 2, 6, 4}}).outputs[0] == by_coordinates({1, 2, 6, 4}, [](const Dims& at) {
            const uint32_t channel = at[1] * 4 + at[2] % 2 * 2 + at[3] % 2;
            return (channel * 3 + at[2] / 2) * 2 + at[3] / 2;
          }));
  }
  const auto text = [](const Dims& x, int64_t factor) {
    return failure(unary("aten.pixel_shuffle.default", x, {factor}, x));
  };
  CHECK(text({6, 1, 1}, 2) ==
        "Number of channels (6) is not a multiple of the square of the factor (2).");
  CHECK_FALSE(text({4, 1, 1}, 0) == "(no error)");
  CHECK_FALSE(text({4, 1, 1}, INT64_MAX) == "(no error)");
  CHECK_FALSE(text({4, 1}, 2) == "(no error)");
}

TEST_CASE("shape operators: two grids' worth, and types without a kernel") {
  const GraphBuilder big =
      unary("aten.permute_copy.default", {2051, 2053}, {pte::IntList{{1, 0}}}, {2053, 2051});
  const auto planned = graph::testing::plan_graph(big, all_operators());
  REQUIRE(planned.ok());
  CHECK(planned->dispatch(0).grid.y == 2);
  const auto& grid = planned->dispatch(0).grid;
  CHECK(uint64_t{grid.x} * grid.y * 64 >= 2051ull * 2053);
  CHECK(failure(unary("aten.flip.default", {3}, {pte::IntList{{0}}}, {3}, GraphDtype::int64)) ==
        "Element type (int64) of tensor 2 has no kernel in this operator.");
}

}  // namespace
}  // namespace ptero::ops
