// SPDX-License-Identifier: BSD-3-Clause
// Inside the fusions: 4-bit linear layers as calls of a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "passes/graph_index.h"
#include "pte/graph.h"

namespace ptero::passes {

inline constexpr std::string_view kQ4Linear = "et_vk.linear_q4gsw.default";
// The operator that the fusions make; src/ops/quant_linear/fused_q4.cc says what it means.
inline constexpr std::string_view kFusedQ4Linear = "ptero.linear_q4gsw.default";

// A call of kQ4Linear whose weight, scales and bias are constants that nobody else takes.
struct Q4Layer {
  size_t call = 0;
  uint32_t x = 0;
  uint32_t source = 0;  // x behind its views
  uint32_t y = 0;
  uint32_t weight = 0;
  uint32_t scales = 0;
  std::optional<uint32_t> bias;
  int64_t group_size = 0;
  uint32_t n = 0;  // rows of the weight, columns of y
};

// The layer whose result `id` is, maybe under other shapes; the calls between join `through`, the
// layer's among them.
std::optional<Q4Layer> q4_layer_behind(const GraphIndex& index, uint32_t id,
                                       std::set<size_t>& through);

// Whether they are layers of one x, in groups of one size, all with a bias or all without: one
// layer with all their columns.
bool can_join(const GraphIndex& index, std::span<const Q4Layer> layers);

// The constants of that layer.
struct JoinedLayer {
  uint32_t weight = 0;
  uint32_t scales = 0;
  uint32_t bias = 0;  // a Null when there is none
  uint32_t n = 0;
};
JoinedLayer join(pte::Graph& graph, std::span<const Q4Layer> layers);

}  // namespace ptero::passes
