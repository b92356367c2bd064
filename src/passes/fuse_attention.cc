// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>

#include "passes/passes.h"
#include "passes/q4_layers.h"

namespace ptero::passes {
namespace {

constexpr std::string_view kAttention = "sdpa_with_kv_cache.default";
constexpr std::string_view kNeighbours = "et_vk.apply_rotary_emb.default";
constexpr std::string_view kHalves = "et_vk.apply_rotary_emb_hf.default";

struct RotatedAttention {
  size_t attention = 0;
  size_t rotation = 0;
  bool halves = false;
  std::array<Q4Layer, 3> layers;  // of queries, keys and values
  Rewrite rewrite;
};

// The rotation that makes both, queries first.
std::optional<size_t> rotation_of(const GraphIndex& index, uint32_t q, uint32_t k,
                                  std::set<size_t>& calls) {
  const uint32_t turned_q = index.behind_views(q, calls);
  const uint32_t turned_k = index.behind_views(k, calls);
  const std::optional<size_t> call = index.producer(turned_q);
  if (!call || index.producer(turned_k) != call) {
    return std::nullopt;
  }
  const pte::OperatorCall& rotation = index.graph().chain[*call];
  const bool known = (rotation.name == kNeighbours && rotation.args.size() == 5) ||
                     (rotation.name == kHalves && rotation.args.size() == 6);
  const auto* made = std::get_if<pte::ValueIdList>(&index.graph().values[rotation.args.back()]);
  if (!known || made == nullptr || made->ids != std::vector<uint32_t>{turned_q, turned_k}) {
    return std::nullopt;
  }
  calls.insert(*call);
  return call;
}

// [..., S, heads, elements] of one batch, made of [..., S, n].
bool splits_into_heads(const GraphIndex& index, uint32_t id, const Q4Layer& layer) {
  const pte::GraphTensor* split = index.tensor(id);
  const std::vector<uint32_t>& from = index.tensor(layer.y)->dims;
  if (split == nullptr || split->dims.size() < 3 || from.size() < 2) {
    return false;
  }
  const size_t rank = split->dims.size();
  return split->dims[rank - 3] == from[from.size() - 2] &&
         uint64_t{split->dims[rank - 2]} * split->dims[rank - 1] == layer.n;
}

std::optional<RotatedAttention> match_attention(const GraphIndex& index, size_t call) {
  const pte::Graph& graph = index.graph();
  const pte::OperatorCall& attention = graph.chain[call];
  if (attention.name != kAttention || attention.args.size() != 12) {
    return std::nullopt;
  }
  RotatedAttention found{.attention = call};
  std::set<size_t>& calls = found.rewrite.removed;
  calls.insert(call);
  const auto rotation = rotation_of(index, attention.args[0], attention.args[1], calls);
  if (!rotation) {
    return std::nullopt;
  }
  found.rotation = *rotation;
  found.halves = graph.chain[*rotation].name == kHalves;
  const std::vector<uint32_t>& turned = graph.chain[*rotation].args;
  const std::array<uint32_t, 3> split = {turned[0], turned[1], attention.args[2]};
  for (size_t i = 0; i < split.size(); ++i) {
    const auto layer = q4_layer_behind(index, split[i], calls);
    if (!layer || !splits_into_heads(index, split[i], *layer)) {
      return std::nullopt;
    }
    found.layers[i] = *layer;
  }
  const auto& [q, k, v] = found.layers;
  if (q.call == k.call || q.call == v.call || k.call == v.call || k.n != v.n ||
      !can_join(index, found.layers) || index.tensor(attention.args[0]) == nullptr ||
      !index.closed(calls, {attention.args.back()})) {
    return std::nullopt;
  }
  return found;
}

uint32_t add_causal(pte::Graph& graph, uint32_t is_causal) {
  // Without a word about it, sdpa_with_kv_cache is causal and custom_sdpa is not.
  return std::holds_alternative<pte::Null>(graph.values[is_causal]) ? add_value(graph, true)
                                                                    : is_causal;
}

void rewrite_attention(pte::Graph& graph, RotatedAttention& found) {
  const std::vector<uint32_t> attention = graph.chain[found.attention].args;
  const std::vector<uint32_t> rotation = graph.chain[found.rotation].args;
  const JoinedLayer joined = join(graph, found.layers);
  pte::GraphTensor all = std::get<pte::GraphTensor>(graph.values[found.layers[0].y]);
  all.dims.back() = joined.n;
  pte::GraphTensor queries = std::get<pte::GraphTensor>(graph.values[attention[0]]);
  const uint32_t qkv = add_activation(graph, std::move(all));
  const uint32_t q = add_activation(graph, std::move(queries));
  const uint32_t none = add_value(graph, pte::Null{});
  const uint32_t node = graph.chain[found.attention].node_id;
  found.rewrite.added[found.attention] = {
      {node,
       std::string(kQ4Linear),
       {found.layers[0].x, joined.weight, joined.scales,
        add_value(graph, found.layers[0].group_size), joined.bias, qkv}},
      {node,
       "ptero.rotary_kv_cache.default",
       {qkv, rotation[2], rotation[3], attention[3], attention[4], attention[5],
        found.halves ? rotation[4] : none, add_value(graph, found.halves), q}},
      {node,
       "custom_sdpa.default",
       {q, attention[3], attention[4], attention[5], attention[7], attention[8],
        add_causal(graph, attention[9]), attention[10], attention[11]}},
  };
}

}  // namespace

Status fuse_attention(pte::Graph& graph, const graph::DeviceFacts& device) {
  return fuse_all(graph, device, match_attention,
                  [&](RotatedAttention& found) { rewrite_attention(graph, found); });
}

}  // namespace ptero::passes
