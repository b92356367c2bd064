// SPDX-License-Identifier: BSD-3-Clause
#include "passes/q4_layers.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/joined_rows.h"

namespace ptero::passes {
namespace {

using pte::GraphTensor;

// A constant of one call, of this rank.
bool is_own_constant(const GraphIndex& index, uint32_t id, size_t rank) {
  const GraphTensor* tensor = index.tensor(id);
  return tensor != nullptr && tensor->constant_id && tensor->dims.size() == rank &&
         index.uses(id) == 1;
}

uint64_t row_bytes(const GraphTensor& tensor) {
  return tensor.dims.back() * pte::element_size(tensor.dtype).value_or(0);
}

// A new constant that reads as `rows` rows of others side by side.
uint32_t add_joined(pte::Graph& graph, std::span<const uint32_t> ids, uint64_t rows,
                    const std::vector<RowPiece>& pieces, std::vector<uint32_t> dims) {
  GraphTensor tensor = std::get<GraphTensor>(graph.values[ids.front()]);
  std::vector<std::string> keys;
  for (const uint32_t id : ids) {
    const auto& part = std::get<GraphTensor>(graph.values[id]);
    keys.push_back(graph.constants[*part.constant_id].named_key);
  }
  pte::GraphConstant constant = graph.constants[*tensor.constant_id];
  const bool named =
      std::none_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); });
  constant.named_key = named ? fmt::format("{}", fmt::join(keys, " and ")) : std::string();
  constant.data = ByteRange::whole(join_rows(rows, pieces));
  tensor.dims = std::move(dims);
  tensor.constant_id = static_cast<uint32_t>(graph.constants.size());
  graph.constants.push_back(std::move(constant));
  return add_value(graph, std::move(tensor));
}

RowPiece piece(const pte::Graph& graph, uint32_t id, uint64_t stride, uint64_t taken) {
  const auto& tensor = std::get<GraphTensor>(graph.values[id]);
  return {graph.constants[*tensor.constant_id].data, stride, taken};
}

}  // namespace

std::optional<Q4Layer> q4_layer_behind(const GraphIndex& index, uint32_t id,
                                       std::set<size_t>& through) {
  const uint32_t y = index.behind_views(id, through);
  const pte::OperatorCall* call = index.made_by(y, kQ4Linear);
  if (call == nullptr || call->args.size() != 6) {
    return std::nullopt;
  }
  const pte::Graph& graph = index.graph();
  std::set<size_t> ignored;  // copies of x have other takers
  Q4Layer layer{.call = *index.producer(y),
                .x = call->args[0],
                .source = index.behind_views(call->args[0], ignored),
                .y = y,
                .weight = call->args[1],
                .scales = call->args[2]};
  const auto* group = std::get_if<int64_t>(&graph.values[call->args[3]]);
  if (group == nullptr || index.tensor(layer.source) == nullptr ||
      !is_own_constant(index, layer.weight, 2) || !is_own_constant(index, layer.scales, 2)) {
    return std::nullopt;
  }
  layer.group_size = *group;
  layer.n = index.tensor(layer.weight)->dims[0];
  if (!std::holds_alternative<pte::Null>(graph.values[call->args[4]])) {
    layer.bias = call->args[4];
    if (!is_own_constant(index, *layer.bias, 1) || index.tensor(*layer.bias)->dims[0] < layer.n) {
      return std::nullopt;
    }
  }
  const std::vector<uint32_t>& dims = index.tensor(y)->dims;
  if (dims.empty() || dims.back() != layer.n || layer.n == 0 ||
      index.tensor(layer.scales)->dims[1] < layer.n) {
    return std::nullopt;
  }
  through.insert(layer.call);
  return layer;
}

bool can_join(const GraphIndex& index, std::span<const Q4Layer> layers) {
  const Q4Layer& first = layers.front();
  const GraphTensor& weight = *index.tensor(first.weight);
  const GraphTensor& scales = *index.tensor(first.scales);
  const GraphTensor& y = *index.tensor(first.y);
  return std::all_of(layers.begin(), layers.end(), [&](const Q4Layer& layer) {
    const GraphTensor& other_y = *index.tensor(layer.y);
    return layer.source == first.source && layer.group_size == first.group_size &&
           layer.bias.has_value() == first.bias.has_value() &&
           index.tensor(layer.weight)->dims[1] == weight.dims[1] &&
           index.tensor(layer.weight)->dtype == weight.dtype &&
           index.tensor(layer.scales)->dims[0] == scales.dims[0] &&
           index.tensor(layer.scales)->dtype == scales.dtype && other_y.dtype == y.dtype &&
           std::equal(other_y.dims.begin(), other_y.dims.end() - 1, y.dims.begin(),
                      y.dims.end() - 1);
  });
}

JoinedLayer join(pte::Graph& graph, std::span<const Q4Layer> layers) {
  JoinedLayer joined;
  std::vector<uint32_t> weights;
  std::vector<uint32_t> scales;
  std::vector<uint32_t> biases;
  std::vector<RowPiece> weight_pieces;
  std::vector<RowPiece> scale_pieces;
  std::vector<RowPiece> bias_pieces;
  for (const Q4Layer& layer : layers) {
    joined.n += layer.n;
    const auto& weight = std::get<GraphTensor>(graph.values[layer.weight]);
    const auto& scale = std::get<GraphTensor>(graph.values[layer.scales]);
    const uint64_t all = layer.n * row_bytes(weight);  // of the weight: it is one row here
    const uint64_t item = pte::element_size(scale.dtype).value_or(0);
    weights.push_back(layer.weight);
    weight_pieces.push_back(piece(graph, layer.weight, all, all));
    scales.push_back(layer.scales);
    scale_pieces.push_back(piece(graph, layer.scales, row_bytes(scale), layer.n * item));
    if (layer.bias) {
      const auto& bias = std::get<GraphTensor>(graph.values[*layer.bias]);
      biases.push_back(*layer.bias);
      bias_pieces.push_back(piece(graph, *layer.bias, row_bytes(bias),
                                  layer.n * pte::element_size(bias.dtype).value_or(0)));
    }
  }
  const auto& weight = std::get<GraphTensor>(graph.values[weights.front()]);
  const uint32_t row = weight.dims[1];
  const uint32_t groups = std::get<GraphTensor>(graph.values[scales.front()]).dims[0];
  joined.weight = add_joined(graph, weights, 1, weight_pieces, {joined.n, row});
  joined.scales = add_joined(graph, scales, groups, scale_pieces, {groups, joined.n});
  joined.bias = biases.empty() ? add_value(graph, pte::Null{})
                               : add_joined(graph, biases, 1, bias_pieces, {joined.n});
  return joined;
}

}  // namespace ptero::passes
