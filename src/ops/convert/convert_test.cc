// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;

TEST_CASE("convert: every pair of types has a dispatch, the same type none") {
  constexpr GraphDtype kTypes[] = {GraphDtype::float32, GraphDtype::float16, GraphDtype::int32,
                                   GraphDtype::boolean, GraphDtype::int8,    GraphDtype::uint8};
  for (const char* name : {"aten._to_copy.default", "dim_order_ops._to_dim_order_copy.default"}) {
    for (const GraphDtype from : kTypes) {
      for (const GraphDtype to : kTypes) {
        OneOpFixture f;
        const auto plan =
            f.plan(name, {f.input({3, 5}, from), f.null(), f.output({3, 5}, to)}, {{2, 5}});
        REQUIRE(plan.ok());
        CHECK((*plan)->commands.size() == (from == to ? 0 : 1));
        CHECK((*plan)->output_shapes[0] == graph::Shape{2, 5});
      }
    }
  }
}

TEST_CASE("convert: types of one size never share memory") {
  OneOpFixture f;
  const uint32_t x = f.input({4}, GraphDtype::int32);
  const uint32_t y = f.output({4});
  f.graph.chain = {{0, "aten._to_copy.default", {x, y}}};
  const auto memory = graph::plan_memory(f.graph, all_operators());
  REQUIRE(memory.ok());
  CHECK_FALSE(memory->aliases[0]);
  CHECK(memory->storage_of[x] != memory->storage_of[y]);
}

}  // namespace
}  // namespace ptero::ops
