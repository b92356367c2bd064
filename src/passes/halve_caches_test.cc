// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "base/half.h"
#include "graph/testing/graph_builder.h"
#include "passes/converted_source.h"
#include "passes/passes.h"

namespace ptero::passes {
namespace {

using graph::testing::Dims;
using graph::testing::GraphBuilder;
using pte::GraphDtype;

const Dims kCache = {1, 8, 2, 4};

graph::DeviceFacts facts(bool asked = true, bool half = true) {
  graph::DeviceFacts made = graph::testing::default_device();
  made.options.enable_f16_kv_cache = asked;
  if (half) {
    made.features.insert(gpu::Feature::shader_f16);
  }
  return made;
}

const pte::GraphTensor& tensor(const pte::Graph& graph, uint32_t id) {
  return std::get<pte::GraphTensor>(graph.values[id]);
}

struct Attention {
  uint32_t k_cache = 0;
  uint32_t v_cache = 0;
};
void attend(GraphBuilder& builder, Attention caches) {
  const uint32_t q = builder.input({1, 3, 4, 4});
  const uint32_t k = builder.input({1, 3, 2, 4});
  const uint32_t v = builder.input({1, 3, 2, 4});
  const uint32_t y = builder.tensor({1, 3, 4, 4});
  builder.call("sdpa_with_kv_cache.default",
               {q, k, v, caches.k_cache, caches.v_cache, builder.add(int64_t{0}),
                builder.add(int64_t{1}), builder.add(pte::Null{}), builder.add(int64_t{0}),
                builder.add(true), builder.add(pte::Null{}), y});
}

TEST_CASE("halve_caches: caches of attention, with constants of their own") {
  GraphBuilder builder;
  const uint32_t k = builder.constant("zeros", kCache);
  const uint32_t v = builder.constant("zeros", kCache);
  const uint32_t other = builder.constant("zeros", kCache);  // the same bytes, but no cache
  attend(builder, {k, v});
  builder.call("aten.neg.default", {other, builder.tensor(kCache)});
  pte::Graph graph = builder.graph();
  REQUIRE(halve_caches(graph, facts()).ok());
  for (const uint32_t cache : {k, v}) {
    CHECK(tensor(graph, cache).dtype == GraphDtype::float16);
    const pte::GraphConstant& constant = graph.constants[*tensor(graph, cache).constant_id];
    CHECK(constant.data.size() == 8 * 2 * 4 * 2);
    CHECK(constant.named_key != "zeros");
  }
  CHECK(tensor(graph, other).dtype == GraphDtype::float32);
  CHECK(graph.constants[*tensor(graph, other).constant_id].data.size() == 8 * 2 * 4 * 4);
  for (const uint32_t input : graph.inputs) {
    CHECK(tensor(graph, input).dtype == GraphDtype::float32);
  }
}

TEST_CASE("halve_caches: only where it is asked for, and where there is f16") {
  for (const auto& device : {facts(false, true), facts(true, false), facts(false, false)}) {
    GraphBuilder builder;
    const uint32_t k = builder.constant("", kCache);
    const uint32_t v = builder.constant("", kCache);
    attend(builder, {k, v});
    pte::Graph graph = builder.graph();
    REQUIRE(halve_caches(graph, device).ok());
    CHECK(graph.values == builder.graph().values);
    CHECK(graph.constants.size() == builder.graph().constants.size());
  }
}

TEST_CASE("halve_caches: a cache that others touch keeps its type, and so does its partner") {
  GraphBuilder builder;
  const uint32_t k = builder.constant("", kCache);
  const uint32_t v = builder.constant("", kCache);
  attend(builder, {k, v});
  SUBCASE("by an operator") {
    builder.call("aten.neg.default", {v, builder.tensor(kCache)});
  }
  SUBCASE("in a list") {
    builder.call("aten.cat.default",
                 {builder.list({v, v}), builder.add(int64_t{1}), builder.tensor({1, 16, 2, 4})});
  }
  SUBCASE("as an output") {
    builder.outputs({v});
  }
  SUBCASE("beside a cache of another pair") {
    const uint32_t other = builder.constant("", kCache);
    builder.call("aten.neg.default", {other, builder.tensor(kCache)});
    attend(builder, {k, other});
  }
  pte::Graph graph = builder.graph();
  REQUIRE(halve_caches(graph, facts()).ok());
  CHECK(tensor(graph, k).dtype == GraphDtype::float32);
  CHECK(tensor(graph, v).dtype == GraphDtype::float32);
}

TEST_CASE("halve_caches: update_cache and custom_sdpa") {
  GraphBuilder builder;
  const uint32_t k = builder.constant("", kCache);
  const uint32_t v = builder.constant("", kCache);
  const uint32_t value = builder.input({1, 3, 2, 4});
  const uint32_t start = builder.add(int64_t{0});
  builder.call("update_cache.default", {value, k, start, builder.tensor({1})});
  builder.call("update_cache.default", {value, v, start, v});  // its own result
  const uint32_t q = builder.input({1, 3, 4, 4});
  builder.call("custom_sdpa.default",
               {q, k, v, start, builder.add(pte::Null{}), builder.add(int64_t{0}),
                builder.add(true), builder.add(pte::Null{}), builder.tensor({1, 3, 4, 4})});
  pte::Graph graph = builder.graph();
  REQUIRE(halve_caches(graph, facts()).ok());
  CHECK(tensor(graph, k).dtype == GraphDtype::float16);
  CHECK(tensor(graph, v).dtype == GraphDtype::float16);
  CHECK(tensor(graph, value).dtype == GraphDtype::float32);
}

TEST_CASE("halve_caches: what is prepacked into a cache is rounded, too") {
  for (const bool shared : {false, true}) {
    GraphBuilder builder;
    const uint32_t zeros = builder.constant("zeros", kCache);
    const uint32_t k = builder.tensor(kCache);
    const uint32_t v = builder.tensor(kCache);
    builder.call("et_vk.prepack.default", {zeros, k});
    builder.call("et_vk.prepack.default", {zeros, v});
    attend(builder, {k, v});
    if (shared) {
      builder.call("aten.neg.default", {zeros, builder.tensor(kCache)});
    }
    pte::Graph graph = builder.graph();
    const size_t values = graph.values.size();
    REQUIRE(halve_caches(graph, facts()).ok());
    CHECK(tensor(graph, k).dtype == GraphDtype::float16);
    CHECK(tensor(graph, v).dtype == GraphDtype::float16);
    CHECK(tensor(graph, zeros).dtype == (shared ? GraphDtype::float32 : GraphDtype::float16));
    CHECK(graph.values.size() == values + (shared ? 2 : 0));
    for (const size_t call : {0, 1}) {
      const pte::GraphTensor& from = tensor(graph, graph.chain[call].args[0]);
      CHECK(from.dtype == GraphDtype::float16);
      CHECK(graph.constants[*from.constant_id].data.size() == 128);
    }
  }
}

TEST_CASE("converted sources: any range of the bytes") {
  std::vector<float> floats(10000);
  for (size_t i = 0; i < floats.size(); ++i) {
    floats[i] = static_cast<float>(i) / 3;
  }
  std::vector<uint16_t> want(floats.size());
  std::transform(floats.begin(), floats.end(), want.begin(), float_to_half);
  const auto bytes = std::as_bytes(std::span(floats));
  const ConvertedSource<float, uint16_t> source(
      ByteRange::whole(own_bytes({bytes.begin(), bytes.end()})), float_to_half);
  CHECK(source.size() == 20000);
  for (const auto& [offset, size] :
       {std::pair<size_t, size_t>{0, 20000}, {1, 8191}, {8191, 2}, {8192, 8192}, {19999, 1}}) {
    std::vector<std::byte> got(size);
    REQUIRE(source.read(offset, got).ok());
    CHECK(std::memcmp(got.data(), reinterpret_cast<const std::byte*>(want.data()) + offset, size) ==
          0);
  }
  std::vector<std::byte> beyond(2);
  CHECK_FALSE(source.read(19999, beyond).ok());
}

}  // namespace
}  // namespace ptero::passes
