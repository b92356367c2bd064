// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"
#include "passes/passes.h"

namespace ptero::passes {
namespace {

using graph::testing::Dims;
using graph::testing::GraphBuilder;
using pte::Null;

constexpr uint32_t kPairs = 2;
const Dims kCache = {1, 8, 2, 4};
const Dims kTable = {8, kPairs};

graph::DeviceFacts facts(uint32_t context) {
  graph::DeviceFacts made = graph::testing::default_device();
  made.options.context = context;
  return made;
}

const pte::GraphTensor& tensor(const pte::Graph& graph, uint32_t id) {
  return std::get<pte::GraphTensor>(graph.values[id]);
}

uint64_t bytes_of(const pte::Graph& graph, uint32_t id) {
  return graph.constants[*tensor(graph, id).constant_id].data.size();
}

// One layer as exporters write it. By rows: tables are loaded, and a step takes its rows.
struct Layer {
  GraphBuilder builder;
  uint32_t k_cache, v_cache, cosines, sines;
  uint32_t loaded_cosines = 0;
  uint32_t mask;

  explicit Layer(bool by_rows = true, Dims v_dims = kCache, bool masked = false) {
    k_cache = builder.constant("zeros", kCache);
    v_cache = builder.constant("zeros", std::move(v_dims));
    cosines = builder.constant("cos", kTable);
    sines = builder.constant("sin", kTable);
    const uint32_t q = builder.input({1, 3, 4, 4});
    const uint32_t k = builder.input({1, 3, 2, 4});
    const uint32_t v = builder.input({1, 3, 2, 4});
    const uint32_t start = builder.add(pte::SymInt{});
    const uint32_t end = builder.add(pte::SymInt{});
    const uint32_t zero = builder.add(int64_t{0});
    const uint32_t one = builder.add(int64_t{1});
    const uint32_t turned_q = builder.tensor({1, 3, 4, 4});
    const uint32_t turned_k = builder.tensor({1, 3, 2, 4});
    const uint32_t both = builder.list({turned_q, turned_k});
    if (by_rows) {
      std::vector<uint32_t> rows;
      for (const uint32_t table : {cosines, sines}) {
        const uint32_t loaded = builder.tensor(kTable);
        builder.call("et_vk.prepack.default", {table, loaded});
        rows.push_back(builder.tensor({3, kPairs}));
        builder.call("aten.slice_copy.Tensor", {loaded, zero, start, end, one, rows.back()});
        loaded_cosines = table == cosines ? loaded : loaded_cosines;
      }
      builder.call("et_vk.apply_rotary_emb.default", {q, k, rows[0], rows[1], both});
    } else {
      builder.call("et_vk.apply_rotary_emb_hf.default", {q, k, cosines, sines, start, both});
    }
    mask = masked ? builder.constant("", {3, 8}) : builder.add(Null{});
    builder.call("sdpa_with_kv_cache.default",
                 {turned_q, turned_k, v, k_cache, v_cache, start, one, mask, zero,
                  builder.add(!masked), builder.add(Null{}), builder.tensor({1, 3, 4, 4})});
  }

  pte::Graph graph() {
    pte::Graph made = builder.graph();
    for (const bool sine : {false, true}) {
      std::vector<float> values;
      for (uint32_t row = 0; row < 8; ++row) {
        for (uint32_t pair = 0; pair < kPairs; ++pair) {
          const double turned = row * std::pow(100.0, -1.0 * pair);
          values.push_back(static_cast<float>(sine ? std::sin(turned) : std::cos(turned)));
        }
      }
      const auto raw = std::as_bytes(std::span(values));
      made.constants[*tensor(made, sine ? sines : cosines).constant_id].data =
          ByteRange::whole(own_bytes({raw.begin(), raw.end()}));
    }
    return made;
  }
};

std::string refusal(const pte::Graph& from, uint32_t context) {
  pte::Graph graph = from;
  const Status status = resize_context(graph, facts(context));
  REQUIRE(!status.ok());
  CHECK(status.error().code() == ErrorCode::unsupported);
  return status.error().message();
}

TEST_CASE("resize_context: nothing happens unless it is asked for") {
  for (const uint32_t context : {0, 8}) {
    Layer layer;
    const pte::Graph before = layer.graph();
    pte::Graph graph = before;
    REQUIRE(resize_context(graph, facts(context)).ok());
    CHECK(graph.values == before.values);
  }
  GraphBuilder other;
  other.call("aten.neg.default", {other.input({8}), other.tensor({8})});
  pte::Graph graph = other.graph();
  CHECK(resize_context(graph, facts(16)).ok());
  CHECK(graph.values == other.graph().values);
}

TEST_CASE("resize_context: smaller caches, tables as they were") {
  Layer layer;
  pte::Graph graph = layer.graph();
  REQUIRE(resize_context(graph, facts(5)).ok());
  for (const uint32_t cache : {layer.k_cache, layer.v_cache}) {
    CHECK(tensor(graph, cache).dims == Dims{1, 5, 2, 4});
    CHECK(bytes_of(graph, cache) == 5 * 2 * 4 * 4);
  }
  CHECK(tensor(graph, layer.cosines).dims == kTable);
  CHECK(bytes_of(graph, layer.cosines) == 8 * kPairs * 4);
}

TEST_CASE("resize_context: larger caches and tables, with constants of their own") {
  for (const bool by_rows : {true, false}) {
    Layer layer(by_rows);
    const uint32_t other = layer.builder.constant("zeros", kCache);  // the same bytes, no cache
    layer.builder.call("aten.neg.default", {other, layer.builder.tensor(kCache)});
    pte::Graph graph = layer.graph();
    REQUIRE(resize_context(graph, facts(20)).ok());
    for (const uint32_t cache : {layer.k_cache, layer.v_cache}) {
      CHECK(tensor(graph, cache).dims == Dims{1, 20, 2, 4});
      CHECK(bytes_of(graph, cache) == 20 * 2 * 4 * 4);
      CHECK(graph.constants[*tensor(graph, cache).constant_id].named_key != "zeros");
    }
    CHECK(bytes_of(graph, other) == 8 * 2 * 4 * 4);
    for (const uint32_t table : {layer.cosines, layer.sines}) {
      CHECK(tensor(graph, table).dims == Dims{20, kPairs});
      CHECK(bytes_of(graph, table) == 20 * kPairs * 4);
    }
    if (by_rows) {
      CHECK(tensor(graph, layer.loaded_cosines).dims == Dims{20, kPairs});
    }
    std::vector<float> last(kPairs);
    const ByteRange cosines = graph.constants[*tensor(graph, layer.cosines).constant_id].data;
    REQUIRE(cosines.read(19 * kPairs * 4, std::as_writable_bytes(std::span(last))).ok());
    CHECK(last[0] == doctest::Approx(std::cos(19.0)).epsilon(1e-5));
    CHECK(last[1] == doctest::Approx(std::cos(0.19)).epsilon(1e-5));
  }
}

TEST_CASE("resize_context: what is in the way is named") {
  {
    Layer layer;
    layer.builder.call("aten.neg.default", {layer.v_cache, layer.builder.tensor(kCache)});
    CHECK(refusal(layer.graph(), 5) ==
          "The context cannot be changed from 8 to 5 positions: more than attention uses its KV "
          "caches.");
  }
  CHECK(refusal(Layer(true, kCache, true).graph(), 5) ==
        "The context cannot be changed from 8 to 5 positions: attention has a mask, which is of "
        "the program's size.");
  CHECK(refusal(Layer(true, {1, 6, 2, 4}).graph(), 5) ==
        "The context cannot be changed: some KV caches hold 8 positions and some 6.");
  {
    Layer layer;
    layer.builder.call("aten.neg.default", {layer.sines, layer.builder.tensor(kTable)});
    CHECK(refusal(layer.graph(), 16) ==
          "The context cannot be changed from 8 to 16 positions: operator aten.neg.default also "
          "reads a table of rotary angles.");
  }
  {
    Layer layer;
    const uint32_t learned = layer.builder.constant("", {8, 6});
    layer.builder.call("aten.embedding.default",
                       {learned, layer.builder.tensor({3}), layer.builder.tensor({3, 6})});
    CHECK(refusal(layer.graph(), 16) ==
          "The context cannot be changed from 8 to 16 positions: operator aten.embedding.default "
          "takes rows of a table that cannot be computed further.");
    pte::Graph graph = layer.graph();
    CHECK(resize_context(graph, facts(5)).ok());
  }
  {
    Layer layer;
    pte::Graph graph = layer.graph();
    const uint32_t constant = *tensor(graph, layer.sines).constant_id;
    graph.constants[constant].data = ByteRange::whole(own_bytes(std::vector<std::byte>(64)));
    CHECK(refusal(graph, 16).ends_with("further ones cannot be computed."));
  }
  {
    Layer layer;
    const uint32_t value = layer.builder.input({1, 3, 2, 4});
    layer.builder.call("update_cache_with_indices.default",
                       {value, layer.k_cache, layer.builder.add(int64_t{0}),
                        layer.builder.input({3}), layer.builder.tensor({1})});
    CHECK(refusal(layer.graph(), 5).ends_with("its KV caches are rings."));
  }
}

}  // namespace
}  // namespace ptero::passes
