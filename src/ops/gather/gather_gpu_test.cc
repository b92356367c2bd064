// SPDX-License-Identifier: BSD-3-Clause
// index on a device: tables of every rank, indices of several, negative ones and live lengths.
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
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
using graph::testing::Dims;
using graph::testing::GraphBuilder;

uint32_t product(const Dims& dims, size_t first = 0) {
  uint32_t count = 1;
  for (size_t i = first; i < dims.size(); ++i) {
    count *= dims[i];
  }
  return count;
}

TEST_CASE("index: rows of a table of any rank, whatever the index's") {
  gpu::Device device = open_device();
  std::mt19937 random(2);
  for (const Dims& table : std::vector<Dims>{{7}, {7, 5}, {7, 1, 3}, {7, 2, 3, 4}, {1, 6}}) {
    for (const Dims& most : std::vector<Dims>{{6}, {4, 3}}) {
      GraphBuilder builder;
      const uint32_t x = builder.input(table, pte::GraphDtype::int32);
      const uint32_t index = builder.input(most, pte::GraphDtype::int32);
      Dims result = most;
      result.insert(result.end(), table.begin() + 1, table.end());
      const uint32_t y = builder.tensor(result, pte::GraphDtype::int32);
      builder.call("aten.index.Tensor", {x, builder.list({index}), y});
      builder.outputs({y});
      const auto session = must(graph::GraphSession::create(
          must(graph::GraphModel::load(device, builder.graph(), all_operators())),
          {.poison_activations = true}));
      std::vector<int32_t> values(product(table));
      for (int32_t& value : values) {
        value = static_cast<int32_t>(random());
      }
      for (const uint32_t live : {most[0], 1u, 3u}) {
        Dims dims = most;
        dims[0] = live;
        const auto length = static_cast<int32_t>(table[0]);
        std::uniform_int_distribution<int32_t> any(-length, length - 1);
        std::vector<int32_t> indices(product(dims));
        std::vector<int32_t> want;
        for (int32_t& at : indices) {
          at = any(random);
          const auto inner = static_cast<std::ptrdiff_t>(product(table, 1));
          const auto row = values.begin() + (at < 0 ? at + length : at) * inner;
          want.insert(want.end(), row, row + inner);
        }
        const std::vector<graph::RunInput> inputs = {
            {{must(graph::Shape::from(table)), 0}, std::as_bytes(std::span(values))},
            {{must(graph::Shape::from(dims)), 0}, std::as_bytes(std::span(indices))}};
        CHECK(values_of<int32_t>(must(session->run(inputs)).at(0).bytes) == want);
      }
    }
  }
}

}  // namespace
}  // namespace ptero::ops
