// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"

namespace ptero::ops {
namespace {

using graph::testing::GraphBuilder;

std::string outcome(const GraphBuilder& g, std::vector<graph::Shape> live = {}) {
  const auto planned = graph::testing::plan_graph(g, all_operators(), std::move(live));
  if (!planned.ok()) {
    return planned.error().message();
  }
  CHECK(planned->plan->commands.empty());
  return std::to_string(planned->scalars[planned->graph.outputs[0]].value());
}

std::string compute(const char* name, pte::GraphValue a, pte::GraphValue b) {
  GraphBuilder g;
  const uint32_t left = g.add(std::move(a));
  const uint32_t right = g.add(std::move(b));
  const uint32_t result = g.add(pte::SymInt{77});
  g.call(name, {left, right, result});
  g.outputs({result});
  return outcome(g);
}

std::string compute(const char* name, int64_t a, int64_t b) {
  return compute(name, pte::GraphValue(a), pte::GraphValue(b));
}

TEST_CASE("symbolic integers: arithmetic") {
  CHECK(compute("add", 7, -3) == "4");
  CHECK(compute("sub", 7, -3) == "10");
  CHECK(compute("mul", 7, -3) == "-21");
  CHECK(compute("add", pte::GraphValue(2.0), pte::GraphValue(int64_t{3})) == "5");
  CHECK(compute("add", pte::GraphValue(2.5), pte::GraphValue(int64_t{3})) ==
        "Argument 0 (a Double) is not an integer.");
}

TEST_CASE("symbolic integers: division rounds down, as in Python") {
  CHECK(compute("floordiv", 7, 2) == "3");
  CHECK(compute("floordiv", -7, 2) == "-4");
  CHECK(compute("floordiv", 7, -2) == "-4");
  CHECK(compute("floordiv", -7, -2) == "3");
  CHECK(compute("floordiv", -8, 2) == "-4");
  CHECK(compute("floordiv", 0, -2) == "0");
  CHECK(compute("floordiv", 5, 0) == "Value (5) is divided by 0.");
}

TEST_CASE("symbolic integers: 64 bits on the host, no more") {
  CHECK(compute("add", INT32_MAX, 1) == "2147483648");
  CHECK(compute("add", INT64_MAX - 1, 1) == "9223372036854775807");
  CHECK(compute("add", INT64_MAX, 1) == "9223372036854775807 + 1 does not fit 64 bits.");
  CHECK(compute("add", INT64_MIN, -1) == "-9223372036854775808 + -1 does not fit 64 bits.");
  CHECK(compute("sub", INT64_MIN, 1) == "-9223372036854775808 - 1 does not fit 64 bits.");
  CHECK(compute("sub", -1, INT64_MAX) == "-9223372036854775808");
  CHECK(compute("sub", -2, INT64_MAX) == "-2 - 9223372036854775807 does not fit 64 bits.");
  CHECK(compute("mul", int64_t{1} << 32, -(int64_t{1} << 31)) == "-9223372036854775808");
  CHECK(compute("mul", int64_t{1} << 32, int64_t{1} << 31) ==
        "4294967296 * 2147483648 does not fit 64 bits.");
  CHECK(compute("mul", -1, INT64_MIN) == "-1 * -9223372036854775808 does not fit 64 bits.");
  CHECK(compute("mul", INT64_MIN, 1) == "-9223372036854775808");
  CHECK(compute("mul", -3, -5) == "15");
  CHECK(compute("floordiv", INT64_MIN, -1) == "-9223372036854775808 / -1 does not fit 64 bits.");
}

TEST_CASE("symbolic integers: sizes are live, results feed the next call") {
  GraphBuilder g;
  const uint32_t x = g.input({9, 5});
  const uint32_t size = g.add(pte::SymInt{});
  const uint32_t twice = g.add(pte::SymInt{});
  g.call("sym_size.int", {x, g.add(int64_t{-2}), size});
  g.call("mul", {size, g.add(int64_t{2}), twice});
  g.outputs({twice});
  CHECK(outcome(g) == "18");
  CHECK(outcome(g, {{4, 5}}) == "8");

  GraphBuilder wrong;
  const uint32_t y = wrong.input({9, 5});
  const uint32_t out = wrong.add(pte::SymInt{});
  wrong.call("sym_size.int", {y, wrong.add(int64_t{2}), out});
  wrong.outputs({out});
  CHECK(outcome(wrong) == "Axis (2) lies outside a tensor of rank 2.");
}

}  // namespace
}  // namespace ptero::ops
