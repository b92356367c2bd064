// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <utility>

#include "passes/passes.h"
#include "passes/q4_layers.h"

namespace ptero::passes {
namespace {

struct Gates {
  Q4Layer gate;
  Q4Layer up;
  uint32_t result = 0;
  Rewrite rewrite;
};

// The call's first two arguments, in both orders.
std::array<std::pair<uint32_t, uint32_t>, 2> orders(const pte::OperatorCall& call) {
  return {{{call.args[0], call.args[1]}, {call.args[1], call.args[0]}}};
}

// gate when `id` is gate * sigmoid(gate).
std::optional<Q4Layer> swish(const GraphIndex& index, uint32_t id, std::set<size_t>& calls) {
  const uint32_t product = index.behind_views(id, calls);
  const pte::OperatorCall* multiply = index.made_by(product, "aten.mul.Tensor");
  if (multiply == nullptr || multiply->args.size() != 3) {
    return std::nullopt;
  }
  for (const auto& [plain, turned] : orders(*multiply)) {
    std::set<size_t> seen = calls;
    seen.insert(*index.producer(product));
    const pte::OperatorCall* sigmoid =
        index.made_by(index.behind_views(turned, seen), "aten.sigmoid.default");
    if (sigmoid == nullptr || sigmoid->args.size() != 2) {
      continue;
    }
    seen.insert(*index.producer(sigmoid->args[1]));
    const auto gate = q4_layer_behind(index, plain, seen);
    const auto same = q4_layer_behind(index, sigmoid->args[0], seen);
    if (gate && same && gate->call == same->call) {
      calls = std::move(seen);
      return gate;
    }
  }
  return std::nullopt;
}

std::optional<Gates> match_gates(const GraphIndex& index, size_t call) {
  const pte::OperatorCall& multiply = index.graph().chain[call];
  if (multiply.name != "aten.mul.Tensor" || multiply.args.size() != 3) {
    return std::nullopt;
  }
  for (const auto& [first, second] : orders(multiply)) {
    Gates found{.result = multiply.args[2]};
    std::set<size_t>& calls = found.rewrite.removed;
    calls.insert(call);
    const auto gate = swish(index, first, calls);
    const auto up = gate ? q4_layer_behind(index, second, calls) : std::nullopt;
    if (!up || up->call == gate->call || gate->n != up->n || gate->bias ||
        !can_join(index, std::array{*gate, *up})) {
      continue;
    }
    const pte::GraphTensor* y = index.tensor(found.result);
    const pte::GraphTensor* part = index.tensor(gate->y);
    if (y != nullptr && y->dtype == part->dtype && !y->dims.empty() && y->dims == part->dims &&
        index.producer(found.result) == call && index.closed(calls, {found.result})) {
      found.gate = *gate;
      found.up = *up;
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace

Status fuse_swiglu(pte::Graph& graph, const graph::DeviceFacts& device) {
  return fuse_all(graph, device, match_gates, [&](Gates& found) {
    const JoinedLayer joined = join(graph, std::array{found.gate, found.up});
    const uint32_t none = add_value(graph, pte::Null{});
    const std::vector<uint32_t> args = {found.gate.x,  joined.weight,
                                        joined.scales, add_value(graph, found.gate.group_size),
                                        joined.bias,   add_value(graph, true),
                                        none,          none,
                                        none,          found.result};
    const size_t last = *found.rewrite.removed.rbegin();
    found.rewrite.added[last] = {{graph.chain[last].node_id, std::string(kFusedQ4Linear), args}};
  });
}

}  // namespace ptero::passes
