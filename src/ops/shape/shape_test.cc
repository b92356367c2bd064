// SPDX-License-Identifier: BSD-3-Clause
// The plans of this folder's operators, executed on the CPU by a model of its three kernels.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"
#include "ops/shape/concat_rows.wgsl.h"
#include "ops/shape/strided_copy.wgsl.h"
#include "ops/shape/strided_copy_packed.wgsl.h"

namespace ptero::ops {
namespace {

using graph::Shape;
using graph::testing::Dims;
using graph::testing::GraphBuilder;
using graph::testing::Planned;
using pte::GraphDtype;
using Numbers = std::vector<uint32_t>;

template <typename Params>
Params params_of(const graph::PlannedDispatch& dispatch) {
  Params params;
  REQUIRE(dispatch.params.size() == sizeof(params));
  std::memcpy(&params, dispatch.params.data(), sizeof(params));
  return params;
}

double override_of(const graph::PlannedDispatch& dispatch, std::string_view name) {
  return gpu::override_value(dispatch.kernel, name).value();
}

constexpr uint32_t kNoSource = 0xffffffff;

template <typename Params>
uint32_t source_of(const Params& p, bool windowed, uint32_t i) {
  uint32_t at = p.base;
  for (uint32_t axis = 0; axis < p.rank; ++axis) {
    uint32_t coordinate = i % p.dims[axis / 4][axis % 4];
    i /= p.dims[axis / 4][axis % 4];
    if (windowed) {
      coordinate -= p.lows[axis / 4][axis % 4];
      if (coordinate >= p.sizes[axis / 4][axis % 4]) {
        return kNoSource;
      }
    }
    at += coordinate * p.strides[axis / 4][axis % 4];
  }
  return at;
}

void execute(const graph::PlannedDispatch& dispatch, const Numbers& x, Numbers& y) {
  if (dispatch.kernel.source == &wgsl::kConcatRows) {
    const auto p = params_of<wgsl::ConcatRowsParams>(dispatch);
    for (uint32_t i = 0; i < p.n; ++i) {
      y.at(p.y_base + i / p.row * p.y_row + i % p.row) = x.at(i);
    }
    return;
  }
  const bool windowed = override_of(dispatch, "windowed") != 0;
  if (dispatch.kernel.source == &wgsl::kStridedCopy) {
    const auto p = params_of<wgsl::StridedCopyParams>(dispatch);
    for (uint32_t i = 0; i < p.n; ++i) {
      const uint32_t at = source_of(p, windowed, i);
      y.at(i) = at == kNoSource ? p.fill : x.at(at);
    }
    return;
  }
  REQUIRE(dispatch.kernel.source == &wgsl::kStridedCopyPacked);
  const auto p = params_of<wgsl::StridedCopyPackedParams>(dispatch);
  const auto per_word = static_cast<uint32_t>(override_of(dispatch, "per_word"));
  const bool keep = override_of(dispatch, "keep") != 0;
  const uint32_t bits = 32 / per_word;
  const uint32_t mask = (1u << bits) - 1;
  for (uint32_t word = 0; word <= (p.n - 1) / per_word; ++word) {
    uint32_t value = keep ? y.at(word) : 0;
    for (uint32_t e = 0; e < std::min(per_word, p.n - word * per_word); ++e) {
      const uint32_t at = source_of(p, windowed, word * per_word + e);
      if (at == kNoSource && keep) {
        continue;
      }
      const uint32_t element =
          at == kNoSource ? p.fill : (x.at(at / per_word) >> (at % per_word * bits)) & mask;
      value = (value & ~(mask << (e * bits))) | (element << (e * bits));
    }
    y.at(word) = value;
  }
}

uint32_t bits_of(GraphDtype dtype) {
  return 8 * pte::element_size(dtype).value();
}

Numbers pack(const Numbers& numbers, GraphDtype dtype) {
  const uint32_t per_word = 32 / bits_of(dtype);
  Numbers words((numbers.size() + per_word - 1) / per_word);
  for (size_t i = 0; i < numbers.size(); ++i) {
    words[i / per_word] |= numbers[i] << (i % per_word * bits_of(dtype));
  }
  return words;
}

Numbers unpack(const Numbers& words, uint64_t count, GraphDtype dtype) {
  const uint32_t per_word = 32 / bits_of(dtype);
  Numbers numbers;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t shifted = words.at(i / per_word) >> (i % per_word * bits_of(dtype));
    numbers.push_back(dtype == GraphDtype::float32 || dtype == GraphDtype::int32
                          ? shifted
                          : shifted & ((1u << bits_of(dtype)) - 1));
  }
  return numbers;
}

Numbers iota(uint64_t count, uint32_t first = 0) {
  Numbers numbers(count);
  for (uint32_t i = 0; i < count; ++i) {
    numbers[i] = first + i;
  }
  return numbers;
}

// One call on inputs whose elements are 0, 1, 2, ... for the first, 100, 101, ... for the second,
// and so on; outputs start from garbage. Checks the live shapes, gives the outputs' elements.
struct Run {
  std::vector<Numbers> outputs;
  Planned planned;
};

Run run(const GraphBuilder& g, const std::vector<Shape>& live, const std::vector<Shape>& shapes) {
  Result<Planned> planned = graph::testing::plan_graph(g, all_operators(), live);
  REQUIRE_MESSAGE(planned.ok(), (planned.ok() ? "" : planned.error().to_string()));
  CHECK(planned->plan->output_shapes == shapes);
  std::vector<Numbers> memory;
  for (const graph::Storage& storage : planned->memory.storages) {
    memory.emplace_back(storage.bytes / 4, 0xa5a5a5a5);
  }
  const auto tensor = [&](uint32_t id) { return std::get<pte::GraphTensor>(g.graph().values[id]); };
  for (size_t i = 0; i < g.graph().inputs.size(); ++i) {
    const uint32_t id = g.graph().inputs[i];
    const uint64_t count = live.empty() ? Shape::from(tensor(id).dims)->numel() : live[i].numel();
    const Numbers words = pack(iota(count, static_cast<uint32_t>(100 * i)), tensor(id).dtype);
    std::copy(words.begin(), words.end(), memory[*planned->memory.storage_of[id]].begin());
  }
  for (size_t i = 0; i < planned->plan->commands.size(); ++i) {
    const graph::PlannedDispatch& dispatch = planned->dispatch(i);
    execute(dispatch, memory[dispatch.bindings.at(0).id], memory[dispatch.bindings.at(1).id]);
  }
  Run result;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const uint32_t id = g.graph().outputs[i];
    result.outputs.push_back(
        unpack(memory[*planned->memory.storage_of[id]], shapes[i].numel(), tensor(id).dtype));
  }
  result.planned = std::move(planned).value();
  return result;
}

std::string failure(const GraphBuilder& g, const std::vector<Shape>& live = {}) {
  const Result<Planned> planned = graph::testing::plan_graph(g, all_operators(), live);
  return planned.ok() ? "(no error)" : planned.error().message();
}

constexpr GraphDtype kAllTypes[] = {GraphDtype::float32, GraphDtype::int32, GraphDtype::float16,
                                    GraphDtype::int8,    GraphDtype::uint8, GraphDtype::boolean};

// Elements of a dense result from its coordinates.
Numbers by_coordinates(const Dims& dims, const std::function<uint32_t(const Dims&)>& element) {
  Numbers numbers;
  Dims at(dims.size());
  const uint64_t count = Shape::from(dims)->numel();
  for (uint64_t i = 0; i < count; ++i) {
    numbers.push_back(element(at));
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) {
        break;
      }
      at[axis] = 0;
    }
  }
  return numbers;
}

// y = op(x, integer arguments...) where the graph says only the largest shapes.
GraphBuilder unary(const char* name, const Dims& x, const std::vector<pte::GraphValue>& arguments,
                   const Dims& y, GraphDtype dtype = GraphDtype::float32) {
  GraphBuilder g;
  std::vector<uint32_t> args = {g.input(x, dtype)};
  for (const pte::GraphValue& argument : arguments) {
    args.push_back(g.add(argument));
  }
  args.push_back(g.tensor(y, dtype));
  g.outputs({args.back()});
  g.call(name, args);
  return g;
}

constexpr int64_t kEnd = INT64_MAX;

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

TEST_CASE("slice: an inner axis, with a live length and symbolic ends") {
  GraphBuilder g;
  const uint32_t x = g.tensor({3, 9, 2}, GraphDtype::int8);
  const uint32_t start = g.add(pte::SymInt{});
  g.inputs({x, start});
  const uint32_t end = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({3, 9, 2}, GraphDtype::int8);
  g.call("add", {start, g.add(int64_t{2}), end});
  g.call("aten.slice_copy.Tensor", {x, g.add(int64_t{-2}), start, end, g.add(int64_t{1}), y});
  g.outputs({y});
  const auto memory = graph::plan_memory(g.graph(), all_operators());
  REQUIRE(memory.ok());
  graph::Planner planner(g.graph(), *memory, all_operators(), graph::testing::default_device());
  const auto plan = planner.plan(std::vector<graph::LiveInput>{{{3, 5, 2}, 0}, {{}, 2}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == Shape{3, 2, 2});
  const auto past = planner.plan(std::vector<graph::LiveInput>{{{3, 5, 2}, 0}, {{}, 4}});
  REQUIRE(past.ok());
  CHECK((*past)->output_shapes[0] == Shape{3, 1, 2});
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
