// SPDX-License-Identifier: BSD-3-Clause
#include "passes/graph_index.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ptero::passes {
namespace {

// Copies of argument 0 in the same order, under another shape or under none.
constexpr std::array<std::string_view, 5> kViews = {
    "aten.alias_copy.default", "aten.clone.default", "aten.squeeze_copy.dims",
    "aten.unsqueeze_copy.default", "aten.view_copy.default"};

bool is_view(const pte::OperatorCall& call) {
  return std::find(kViews.begin(), kViews.end(), call.name) != kViews.end();
}

}  // namespace

template <typename Body>
void GraphIndex::for_each_tensor(uint32_t id, Body&& body) const {
  if (const auto* list = std::get_if<pte::ValueIdList>(&graph_.values[id])) {
    for (const uint32_t item : list->ids) {
      body(item);
    }
  } else {
    body(id);
  }
}

GraphIndex::GraphIndex(const pte::Graph& graph)
    : graph_(graph),
      producers_(graph.values.size()),
      uses_(graph.values.size()),
      is_output_(graph.values.size()) {
  std::vector<bool> has_contents(graph.values.size());
  for (uint32_t id = 0; id < graph.values.size(); ++id) {
    has_contents[id] = tensor(id) != nullptr && tensor(id)->constant_id.has_value();
  }
  for (const uint32_t id : graph.inputs) {
    has_contents[id] = true;
  }
  for (size_t i = 0; i < graph.chain.size(); ++i) {
    const std::vector<uint32_t>& args = graph.chain[i].args;
    for (size_t arg = 0; arg + 1 < args.size(); ++arg) {
      for_each_tensor(args[arg], [&](uint32_t id) { uses_[id].push_back(i); });
    }
    if (!args.empty()) {
      for_each_tensor(args.back(), [&](uint32_t id) {
        producers_[id] = has_contents[id] ? std::nullopt : std::optional<size_t>(i);
        has_contents[id] = true;
      });
    }
  }
  for (const uint32_t id : graph.outputs) {
    is_output_[id] = true;
  }
}

const pte::OperatorCall* GraphIndex::made_by(uint32_t id, std::string_view name) const {
  const std::optional<size_t> call = producers_[id];
  return call && graph_.chain[*call].name == name ? &graph_.chain[*call] : nullptr;
}

uint32_t GraphIndex::behind_views(uint32_t id, std::set<size_t>& through) const {
  while (producers_[id]) {
    const pte::OperatorCall& call = graph_.chain[*producers_[id]];
    const pte::GraphTensor* to = tensor(id);
    const pte::GraphTensor* from = is_view(call) ? tensor(call.args.front()) : nullptr;
    if (from == nullptr || to == nullptr || from->dtype != to->dtype) {
      break;
    }
    through.insert(*producers_[id]);
    id = call.args.front();
  }
  return id;
}

bool GraphIndex::closed(const std::set<size_t>& calls, const std::set<uint32_t>& kept) const {
  for (const size_t call : calls) {
    bool all = true;
    for_each_tensor(graph_.chain[call].args.back(), [&](uint32_t id) {
      const bool ours = std::all_of(uses_[id].begin(), uses_[id].end(),
                                    [&](size_t user) { return calls.contains(user); });
      all = all && (kept.contains(id) || (ours && !is_output_[id]));
    });
    if (!all) {
      return false;
    }
  }
  return true;
}

bool overlap(const Rewrite& a, const Rewrite& b) {
  return std::any_of(a.removed.begin(), a.removed.end(),
                     [&](size_t call) { return b.removed.contains(call); });
}

void apply_rewrites(const std::vector<Rewrite>& rewrites, pte::Graph& graph) {
  std::vector<pte::OperatorCall> chain;
  for (size_t i = 0; i < graph.chain.size(); ++i) {
    bool removed = false;
    for (const Rewrite& rewrite : rewrites) {
      removed = removed || rewrite.removed.contains(i);
      if (const auto added = rewrite.added.find(i); added != rewrite.added.end()) {
        chain.insert(chain.end(), added->second.begin(), added->second.end());
      }
    }
    if (!removed) {
      chain.push_back(std::move(graph.chain[i]));
    }
  }
  graph.chain = std::move(chain);
}

uint32_t add_value(pte::Graph& graph, pte::GraphValue value) {
  graph.values.push_back(std::move(value));
  return static_cast<uint32_t>(graph.values.size() - 1);
}

uint32_t add_activation(pte::Graph& graph, pte::GraphTensor tensor) {
  const uint32_t id = add_value(graph, std::move(tensor));
  std::get<pte::GraphTensor>(graph.values[id]).mem_obj_id = id;  // that of no other value
  return id;
}

}  // namespace ptero::passes
