// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>

#include "passes/passes.h"
#include "passes/q4_layers.h"

namespace ptero::passes {
namespace {

using pte::GraphTensor;
using pte::Null;

// Positions of arguments of kFusedQ4Linear.
enum : size_t { kX, kBias = 4, kGated, kNormWeight, kNormEps, kResidual, kY, kCount };

bool is_null(const pte::Graph& graph, uint32_t id) {
  return std::holds_alternative<Null>(graph.values[id]);
}

// The call as one of kFusedQ4Linear; empty when it is another operator.
std::vector<uint32_t> fused_arguments(pte::Graph& graph, const pte::OperatorCall& call) {
  if (call.name == kFusedQ4Linear) {
    return call.args;
  }
  if (call.name != kQ4Linear || call.args.size() != 6) {
    return {};
  }
  std::vector<uint32_t> args = call.args;
  const uint32_t none = add_value(graph, Null{});
  args.pop_back();
  args.push_back(add_value(graph, false));
  args.insert(args.end(), {none, none, none, call.args.back()});
  return args;
}

bool is_layer(const pte::OperatorCall& call) {
  return call.name == kFusedQ4Linear || (call.name == kQ4Linear && call.args.size() == 6);
}

bool has_residual(const pte::Graph& graph, const pte::OperatorCall& call) {
  return call.name == kFusedQ4Linear && !is_null(graph, call.args[kResidual]);
}

bool is_gated(const pte::Graph& graph, const pte::OperatorCall& call) {
  const bool* gated =
      call.name == kFusedQ4Linear ? std::get_if<bool>(&graph.values[call.args[kGated]]) : nullptr;
  return gated != nullptr && *gated;
}

struct Residual {
  size_t layer = 0;
  size_t add = 0;
  uint32_t other = 0;
  uint32_t result = 0;
  Rewrite rewrite;
};

// y + other, where y comes from a layer without a bias and other is no constant.
std::optional<Residual> match_residual(const GraphIndex& index, size_t add) {
  const pte::Graph& graph = index.graph();
  const pte::OperatorCall& call = graph.chain[add];
  if (call.name != "aten.add.Tensor" || call.args.size() != 4) {
    return std::nullopt;
  }
  const pte::GraphValue& alpha = graph.values[call.args[2]];
  const bool plain = is_null(graph, call.args[2]) || alpha == pte::GraphValue(int64_t{1}) ||
                     alpha == pte::GraphValue(1.0);
  for (const size_t side : {0, 1}) {
    Residual found{.add = add, .other = call.args[1 - side], .result = call.args[3]};
    std::set<size_t>& calls = found.rewrite.removed;
    const uint32_t y = index.behind_views(call.args[side], calls);
    const std::optional<size_t> layer = index.producer(y);
    if (!plain || !layer || !is_layer(graph.chain[*layer]) ||
        !is_null(graph, graph.chain[*layer].args[kBias]) ||
        has_residual(graph, graph.chain[*layer]) || is_gated(graph, graph.chain[*layer])) {
      continue;
    }
    calls.insert(*layer);
    calls.insert(add);
    found.layer = *layer;
    const GraphTensor* other = index.tensor(found.other);
    const GraphTensor* result = index.tensor(found.result);
    const GraphTensor* from = index.tensor(y);
    if (other != nullptr && result != nullptr && from != nullptr && !other->constant_id &&
        other->dtype == from->dtype && result->dtype == from->dtype && other->dims == from->dims &&
        result->dims == from->dims && index.producer(found.result) == add &&
        index.closed(calls, {found.result})) {
      return found;
    }
  }
  return std::nullopt;
}

struct Norm {
  size_t norm = 0;
  size_t layer = 0;
  Rewrite rewrite;
};

// A layer that alone takes what et_vk.rms_norm makes of single-precision rows.
std::optional<Norm> match_norm(const GraphIndex& index, size_t layer) {
  const pte::Graph& graph = index.graph();
  const pte::OperatorCall& call = graph.chain[layer];
  if (!is_layer(call) || (call.name == kFusedQ4Linear && !is_null(graph, call.args[kNormWeight]))) {
    return std::nullopt;
  }
  Norm found{.layer = layer};
  std::set<size_t>& calls = found.rewrite.removed;
  const uint32_t y = index.behind_views(call.args[kX], calls);
  const pte::OperatorCall* norm = index.made_by(y, "et_vk.rms_norm.default");
  if (norm == nullptr || norm->args.size() != 4) {
    return std::nullopt;
  }
  found.norm = *index.producer(y);
  calls.insert({found.norm, layer});
  const GraphTensor* x = index.tensor(norm->args[0]);
  const GraphTensor* weight = index.tensor(norm->args[1]);
  const GraphTensor* taken = index.tensor(call.args[kX]);
  const bool same_rows = x != nullptr && weight != nullptr && taken != nullptr &&
                         x->dtype == pte::GraphDtype::float32 && weight->dtype == x->dtype &&
                         !x->dims.empty() && !taken->dims.empty() &&
                         x->dims.back() == taken->dims.back();
  const bool shape_is_kept = same_rows && x->dims == taken->dims;
  if (!shape_is_kept || !index.closed(calls, {call.args.back()})) {
    return std::nullopt;
  }
  return found;
}

}  // namespace

Status fuse_residual(pte::Graph& graph, const graph::DeviceFacts& device) {
  return fuse_all(graph, device, match_residual, [&](Residual& found) {
    std::vector<uint32_t> args = fused_arguments(graph, graph.chain[found.layer]);
    args[kResidual] = found.other;
    args[kY] = found.result;
    found.rewrite.added[found.add] = {
        {graph.chain[found.layer].node_id, std::string(kFusedQ4Linear), std::move(args)}};
  });
}

Status fuse_norm(pte::Graph& graph, const graph::DeviceFacts& device) {
  return fuse_all(graph, device, match_norm, [&](Norm& found) {
    const std::vector<uint32_t> norm = graph.chain[found.norm].args;
    std::vector<uint32_t> args = fused_arguments(graph, graph.chain[found.layer]);
    args[kX] = norm[0];
    args[kNormWeight] = norm[1];
    args[kNormEps] = norm[2];
    found.rewrite.added[found.layer] = {
        {graph.chain[found.layer].node_id, std::string(kFusedQ4Linear), std::move(args)}};
  });
}

}  // namespace ptero::passes
