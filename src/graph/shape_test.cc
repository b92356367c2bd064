// SPDX-License-Identifier: BSD-3-Clause
#include "graph/shape.h"

#include <doctest/doctest.h>

namespace ptero::graph {
namespace {

TEST_CASE("shape: elements, equality and text") {
  CHECK(Shape().numel() == 1);
  CHECK(Shape({2, 3, 5}).numel() == 30);
  CHECK(Shape({2, 3, 5}).numel(1, 3) == 15);
  CHECK(Shape({2, 0, 5}).numel() == 0);
  CHECK(Shape({2, 3}) != Shape({2, 3, 1}));
  CHECK(to_string(Shape({1, 63, 256})) == "[1, 63, 256]");
  CHECK(to_string(Shape()) == "[]");
  const uint32_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  CHECK(Shape::from(std::span(nine).first(8)).ok());
  CHECK(Shape::from(nine).error().message() ==
        "Rank (9) of a tensor exceeds the limit of the kernels (8).");
}

TEST_CASE("shape: axes count from either end") {
  CHECK(*normalize_axis(0, 3) == 0);
  CHECK(*normalize_axis(-1, 3) == 2);
  CHECK(*normalize_axis(-3, 3) == 0);
  CHECK_FALSE(normalize_axis(3, 3).ok());
  CHECK_FALSE(normalize_axis(-4, 3).ok());
  CHECK_FALSE(normalize_axis(0, 0).ok());
}

TEST_CASE("shape: broadcasting aligns at the end") {
  CHECK(*broadcast({4, 1, 3}, {5, 1}) == Shape({4, 5, 3}));
  CHECK(*broadcast({}, {2, 2}) == Shape({2, 2}));
  CHECK(*broadcast({1}, {0}) == Shape({0}));
  CHECK(broadcast({2, 3}, {2}).error().message() == "Shapes [2, 3] and [2] do not broadcast.");
}

TEST_CASE("shape: strides, with zeros along what broadcasting repeats") {
  const auto dense = strides({2, 3, 5});
  CHECK(dense[0] == 15);
  CHECK(dense[1] == 5);
  CHECK(dense[2] == 1);
  const auto repeated = broadcast_strides({3, 1}, {2, 3, 5});
  CHECK(repeated[0] == 0);
  CHECK(repeated[1] == 1);
  CHECK(repeated[2] == 0);
}

}  // namespace
}  // namespace ptero::graph
