// SPDX-License-Identifier: BSD-3-Clause
// The fusions on graphs as exporters write them: what becomes one, and what must not.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"
#include "passes/passes.h"

namespace ptero::passes {
namespace {

using graph::testing::Dims;
using graph::testing::GraphBuilder;

constexpr uint32_t kWidth = 64;
constexpr uint32_t kRows = 5;

graph::DeviceFacts facts(bool fused = true) {
  graph::DeviceFacts made = graph::testing::default_device();
  made.options.enable_fusion = fused;
  return made;
}

// Calls as exporters write them, a copy behind each linear layer.
class Maker : public GraphBuilder {
 public:
  uint32_t none() { return add(pte::Null{}); }
  uint32_t layer(uint32_t x, uint32_t n, Dims view = {}, int64_t group = 32, bool bias = false) {
    const std::string name = "w" + std::to_string(++layers_);
    const uint32_t weight = constant(name, {n, kWidth / 2}, pte::GraphDtype::uint8);
    const uint32_t scales = constant(name + ".scales", {kWidth / 32, (n + 3) / 4 * 4});
    const uint32_t addend = bias ? constant(name + ".bias", {n}) : none();
    const uint32_t y = tensor({1, kRows, n});
    call("et_vk.linear_q4gsw.default", {x, weight, scales, add(group), addend, y});
    last_layer = y;
    return view_of(y, view.empty() ? Dims{1, kRows, n} : view);
  }
  uint32_t view_of(uint32_t x, Dims dims) {
    const uint32_t y = tensor(std::move(dims));
    call("aten.view_copy.default", {x, integers({1, -1}), y});
    return y;
  }
  uint32_t binary(const char* name, uint32_t a, uint32_t b, uint32_t n) {
    const uint32_t y = tensor({1, kRows, n});
    if (std::strcmp(name, "aten.add.Tensor") == 0) {
      call(name, {a, b, add(int64_t{1}), y});
    } else {
      call(name, {a, b, y});
    }
    return y;
  }
  uint32_t sigmoid(uint32_t x, uint32_t n) {
    const uint32_t y = tensor({1, kRows, n});
    call("aten.sigmoid.default", {x, y});
    return y;
  }
  uint32_t norm(uint32_t x) {
    const uint32_t y = tensor({1, kRows, kWidth});
    call("et_vk.rms_norm.default", {x, constant("norm", {kWidth}), add(1e-5), y});
    return y;
  }
  uint32_t last_layer = 0;

 private:
  int layers_ = 0;
};

using Names = std::vector<std::string>;

// The calls that are left, without those that only copy.
Names names(const pte::Graph& graph) {
  Names made;
  for (const pte::OperatorCall& call : graph.chain) {
    if (call.name != "aten.view_copy.default") {
      made.push_back(call.name);
    }
  }
  return made;
}
Names run(pte::Graph& graph, bool fused = true) {
  for (const graph::GraphPass& pass : standard_passes()) {
    const Status status = pass(graph, facts(fused));
    REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().to_string()));
  }
  return names(graph);
}

const std::string kLayer = "et_vk.linear_q4gsw.default";
const std::string kFused = "ptero.linear_q4gsw.default";

const pte::GraphTensor& tensor(const pte::Graph& graph, uint32_t id) {
  return std::get<pte::GraphTensor>(graph.values[id]);
}

TEST_CASE("fuse_swiglu: gate and up become one layer, in every order of the factors") {
  for (const int order : {0, 1, 2, 3}) {
    Maker m;
    const uint32_t x = m.input({1, kRows, kWidth});
    const uint32_t gate = m.layer(x, 96);
    const uint32_t s = m.sigmoid(gate, 96);
    const uint32_t t = order % 2 == 0 ? m.binary("aten.mul.Tensor", s, gate, 96)
                                      : m.binary("aten.mul.Tensor", gate, s, 96);
    const uint32_t up = m.layer(x, 96);
    const uint32_t y = order / 2 == 0 ? m.binary("aten.mul.Tensor", t, up, 96)
                                      : m.binary("aten.mul.Tensor", up, t, 96);
    m.outputs({y});
    pte::Graph graph = m.graph();
    CHECK(run(graph) == Names{kFused});
    const std::vector<uint32_t>& args = graph.chain[0].args;
    CHECK(args[0] == x);
    CHECK(args.back() == y);
    CHECK(std::get<bool>(graph.values[args[5]]));
    CHECK(tensor(graph, args[1]).dims == Dims{192, kWidth / 2});
    CHECK(tensor(graph, args[2]).dims == Dims{2, 192});
    pte::Graph plain = m.graph();
    CHECK(run(plain, false).size() == 5);
  }
}

TEST_CASE("fuse_swiglu: what somebody else needs stays") {
  enum class Spoiled { nothing, gate_is_output, up_is_read, other_x, group, bias, plain_product };
  for (const Spoiled how :
       {Spoiled::nothing, Spoiled::gate_is_output, Spoiled::up_is_read, Spoiled::other_x,
        Spoiled::group, Spoiled::bias, Spoiled::plain_product}) {
    CAPTURE(static_cast<int>(how));
    Maker m;
    const uint32_t x = m.input({1, kRows, kWidth});
    const uint32_t other = m.input({1, kRows, kWidth});
    const uint32_t gate = m.layer(x, 64, {}, 32, how == Spoiled::bias);
    const uint32_t gate_layer = m.last_layer;
    const uint32_t s = m.sigmoid(how == Spoiled::plain_product ? other : gate, 64);
    const uint32_t t = m.binary("aten.mul.Tensor", gate, s, 64);
    const uint32_t up = m.layer(how == Spoiled::other_x ? other : x, 64, {},
                                how == Spoiled::group ? 64 : 32, how == Spoiled::bias);
    const uint32_t y = m.binary("aten.mul.Tensor", t, up, 64);
    std::vector<uint32_t> outputs = {y};
    if (how == Spoiled::gate_is_output) {
      outputs.push_back(gate_layer);
    }
    if (how == Spoiled::up_is_read) {
      outputs.push_back(m.sigmoid(up, 64));
    }
    m.outputs(outputs);
    pte::Graph graph = m.graph();
    const Names before = names(graph);
    CHECK((run(graph) != before) == (how == Spoiled::nothing));
  }
}

struct Attention {
  Maker m;
  uint32_t k_cache = 0;
  uint32_t y = 0;

  explicit Attention(bool halves, bool shared_k = false, uint32_t v_width = 32) {
    const uint32_t x = m.input({1, kRows, kWidth});
    const uint32_t cosines = m.input({halves ? 16u : kRows, halves ? 16u : 8u});
    const uint32_t sines = m.input({halves ? 16u : kRows, halves ? 16u : 8u});
    const uint32_t q = m.layer(x, 64, {1, kRows, 4, 16});
    const uint32_t k = m.layer(x, 32, {1, kRows, 2, 16});
    const uint32_t v = m.layer(x, v_width, {1, kRows, v_width / 16, 16});
    const uint32_t tq = m.tensor({1, kRows, 4, 16});
    const uint32_t tk = m.tensor({1, kRows, 2, 16});
    const uint32_t position = m.add(pte::SymInt{});
    std::vector<uint32_t> args = {q, k, cosines, sines};
    if (halves) {
      args.push_back(position);
    }
    args.push_back(m.list({tq, tk}));
    m.call(halves ? "et_vk.apply_rotary_emb_hf.default" : "et_vk.apply_rotary_emb.default", args);
    k_cache = m.constant("zeros", {1, 16, 2, 16});
    const uint32_t v_cache = m.constant("zeros", {1, 16, 2, 16});
    y = m.tensor({1, kRows, 4, 16});
    m.call("sdpa_with_kv_cache.default", {tq, tk, v, k_cache, v_cache, position, m.add(int64_t{1}),
                                          m.none(), m.add(int64_t{0}), m.none(), m.none(), y});
    std::vector<uint32_t> outputs = {y};
    if (shared_k) {
      outputs.push_back(tk);
    }
    m.outputs(outputs);
  }
};

TEST_CASE("fuse_attention: one layer, one kernel for rotation and caches, attention") {
  for (const bool halves : {false, true}) {
    Attention made(halves);
    pte::Graph graph = made.m.graph();
    REQUIRE(run(graph) == Names{kLayer, "ptero.rotary_kv_cache.default", "custom_sdpa.default"});
    const std::vector<uint32_t>& layer = graph.chain[graph.chain.size() - 3].args;
    const std::vector<uint32_t>& rotation = graph.chain[graph.chain.size() - 2].args;
    const std::vector<uint32_t>& attention = graph.chain.back().args;
    CHECK(tensor(graph, layer[1]).dims == Dims{128, kWidth / 2});
    CHECK(tensor(graph, layer.back()).dims == Dims{1, kRows, 128});
    CHECK(rotation[0] == layer.back());
    CHECK(rotation[3] == made.k_cache);
    CHECK(std::holds_alternative<pte::Null>(graph.values[rotation[6]]) == !halves);
    CHECK(attention[0] == rotation.back());
    CHECK(std::get<bool>(graph.values[attention[6]]));  // causal, though the file left it open
    CHECK(attention.back() == made.y);
    // What layer and rotation make needs memory that the file does not give.
    CHECK(tensor(graph, layer.back()).mem_obj_id);
    CHECK(tensor(graph, layer.back()).mem_obj_id != tensor(graph, rotation.back()).mem_obj_id);
  }
}

TEST_CASE("fuse_attention: not when somebody sees the keys, nor when heads do not fit") {
  for (const bool shared : {false, true}) {
    Attention made(false, shared, shared ? 32 : 64);
    pte::Graph graph = made.m.graph();
    const Names before = names(graph);
    CHECK(run(graph) == before);
  }
}

TEST_CASE("fuse_residual: a layer adds what is added to it, once") {
  for (const bool first : {false, true}) {
    Maker m;
    const uint32_t x = m.input({1, kRows, kWidth});
    const uint32_t y = m.layer(x, kWidth);
    const uint32_t sum = first ? m.binary("aten.add.Tensor", y, x, kWidth)
                               : m.binary("aten.add.Tensor", x, y, kWidth);
    const uint32_t twice = m.binary("aten.add.Tensor", sum, x, kWidth);
    m.outputs({twice});
    pte::Graph graph = m.graph();
    REQUIRE(run(graph) == Names{kFused, "aten.add.Tensor"});
    CHECK(graph.chain[0].args[8] == x);
    CHECK(graph.chain[0].args.back() == sum);
  }
}

TEST_CASE("fuse_residual: two layers added together are one of them with the other") {
  Maker m;
  const uint32_t x = m.input({1, kRows, kWidth});
  const uint32_t a = m.layer(x, kWidth);
  const uint32_t b = m.layer(x, kWidth);
  m.outputs({m.binary("aten.add.Tensor", a, b, kWidth)});
  pte::Graph graph = m.graph();
  CHECK(run(graph) == Names{kLayer, kFused});
}

TEST_CASE("fuse_residual: not with a bias, another alpha, broadcasting, or other readers") {
  for (const int how : {0, 1, 2, 3}) {
    CAPTURE(how);
    Maker m;
    const uint32_t x = m.input({1, kRows, kWidth});
    const uint32_t row = m.input({1, 1, kWidth});
    const uint32_t y = m.layer(x, kWidth, {}, 32, how == 0);
    const uint32_t layer = m.last_layer;
    const uint32_t sum = m.tensor({1, kRows, kWidth});
    m.call("aten.add.Tensor", {y, how == 2 ? row : x, m.add(int64_t{how == 1 ? 2 : 1}), sum});
    m.outputs(how == 3 ? std::vector<uint32_t>{sum, layer} : std::vector<uint32_t>{sum});
    pte::Graph graph = m.graph();
    CHECK(run(graph) == Names{kLayer, "aten.add.Tensor"});
  }
}

TEST_CASE("fuse_norm: only for a layer that alone takes it") {
  for (const bool alone : {false, true}) {
    Maker m;
    const uint32_t x = m.input({1, kRows, kWidth});
    const uint32_t h = m.norm(x);
    const uint32_t y = m.layer(h, 32);
    m.outputs(alone ? std::vector<uint32_t>{y} : std::vector<uint32_t>{y, h});
    pte::Graph graph = m.graph();
    if (alone) {
      REQUIRE(run(graph) == Names{kFused});
      CHECK(graph.chain[0].args[0] == x);
      CHECK(tensor(graph, graph.chain[0].args[6]).dims == Dims{kWidth});
    } else {
      CHECK(run(graph) == Names{"et_vk.rms_norm.default", kLayer});
    }
  }
}

TEST_CASE("joined layers: rows of weights one after the other, scales and biases without padding") {
  Maker m;
  const uint32_t x = m.input({1, kRows, kWidth});
  const uint32_t gate = m.layer(x, 6);
  const uint32_t t = m.binary("aten.mul.Tensor", gate, m.sigmoid(gate, 6), 6);
  m.outputs({m.binary("aten.mul.Tensor", t, m.layer(x, 6), 6)});
  pte::Graph graph = m.graph();
  // Numbers that say where they come from.
  for (size_t i = 0; i < graph.constants.size(); ++i) {
    std::vector<std::byte> bytes(graph.constants[i].data.size());
    for (size_t j = 0; j < bytes.size(); ++j) {
      bytes[j] = static_cast<std::byte>(i * 100 + j / 4);
    }
    graph.constants[i].data = ByteRange::whole(own_bytes(std::move(bytes)));
  }
  REQUIRE(run(graph) == Names{kFused});
  const auto bytes_of = [&](uint32_t id) {
    const auto copied = graph.constants[*tensor(graph, id).constant_id].data.copy(1 << 20);
    REQUIRE(copied.ok());
    return *copied;
  };
  const std::vector<std::byte> weight = bytes_of(graph.chain[0].args[1]);
  const std::vector<std::byte> scales = bytes_of(graph.chain[0].args[2]);
  REQUIRE(weight.size() == 2 * 6 * kWidth / 2);
  REQUIRE(scales.size() == 2 * 12 * 4);
  CHECK(weight[6 * kWidth / 2 - 1] == static_cast<std::byte>(0 + 6 * kWidth / 8 - 1));
  CHECK(weight[6 * kWidth / 2] == static_cast<std::byte>(200));
  // Rows of 8 scales, of which 6 count.
  CHECK(scales[4 * 5] == static_cast<std::byte>(100 + 5));
  CHECK(scales[4 * 6] == static_cast<std::byte>(300 % 256));
  CHECK(scales[4 * 12] == static_cast<std::byte>(100 + 8));
  CHECK(scales[4 * 23] == static_cast<std::byte>((300 + 8 + 5) % 256));
}

TEST_CASE("place_activations: what lives at one time never shares, what does not may") {
  Maker m;
  const uint32_t x = m.input({1, kRows, kWidth});
  const uint32_t a = m.in_memory(0, {1, kRows, kWidth});
  const uint32_t b = m.in_memory(1, {1, kRows, kWidth});
  const uint32_t c = m.in_memory(2, {1, kRows, kWidth});
  const uint32_t d = m.in_memory(3, {1, kRows, 8});
  const uint32_t y = m.in_memory(0, {1, kRows, kWidth});
  m.call("aten.neg.default", {x, a});
  m.call("aten.neg.default", {a, b});
  m.call("aten.add.Tensor", {a, b, m.add(int64_t{1}), c});
  m.call("aten.neg.default", {c, d});
  m.call("aten.neg.default", {d, y});
  m.outputs({y});
  pte::Graph graph = m.graph();
  REQUIRE(place_activations(graph, facts()).ok());
  const auto memory = [&](uint32_t id) { return tensor(graph, id).mem_obj_id; };
  CHECK(memory(a) != memory(b));
  CHECK(memory(a) != memory(c));
  CHECK(memory(b) != memory(c));
  CHECK(memory(d) != memory(c));
  CHECK((memory(d) == memory(a) || memory(d) == memory(b)));
  CHECK_FALSE(memory(y));  // an output keeps what it holds
  pte::Graph off = m.graph();
  REQUIRE(place_activations(off, facts(false)).ok());
  CHECK(tensor(off, y).mem_obj_id == 0u);
}

}  // namespace
}  // namespace ptero::passes
