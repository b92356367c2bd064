// SPDX-License-Identifier: BSD-3-Clause
// Who makes and who takes each value of a graph, for passes that look for patterns, and how such a
// pass says what comes in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/pass.h"
#include "pte/graph.h"

namespace ptero::passes {

// Of the graph as it was when the index was made.
class GraphIndex {
 public:
  explicit GraphIndex(const pte::Graph& graph);

  const pte::Graph& graph() const { return graph_; }

  // The tensor with this id; null when the value is something else.
  const pte::GraphTensor* tensor(uint32_t id) const {
    return std::get_if<pte::GraphTensor>(&graph_.values[id]);
  }
  // The call that makes a value, if it is one call and the value has no contents before.
  std::optional<size_t> producer(uint32_t id) const { return producers_[id]; }
  // The call that makes it, if that has this name.
  const pte::OperatorCall* made_by(uint32_t id, std::string_view name) const;
  // How many places take a value: arguments, by itself or in a list, and outputs of the graph.
  size_t uses(uint32_t id) const { return uses_[id].size() + (is_output_[id] ? 1 : 0); }

  // What a value is a copy of, of the same elements under another shape; `through` gets the calls
  // that copy.
  uint32_t behind_views(uint32_t id, std::set<size_t>& through) const;

  // Whether nobody but these calls takes what they make, except `kept`.
  bool closed(const std::set<size_t>& calls, const std::set<uint32_t>& kept) const;

 private:
  template <typename Body>
  void for_each_tensor(uint32_t id, Body&& body) const;

  const pte::Graph& graph_;
  std::vector<std::optional<size_t>> producers_;
  std::vector<std::vector<size_t>> uses_;  // calls
  std::vector<bool> is_output_;
};

// Calls to take out of a graph, and what runs in their place.
struct Rewrite {
  std::set<size_t> removed;
  std::map<size_t, std::vector<pte::OperatorCall>> added;  // each where a removed call was
};

// Whether two rewrites, made from one index, may both be done: they touch different calls.
bool overlap(const Rewrite& a, const Rewrite& b);

// What all fusions do: `match(index, call)` finds a pattern that ends at a call, an optional of
// something with a member `rewrite` that says which calls go; `fill(match)` adds to the graph what
// comes instead. Of two patterns that overlap the first is taken. Nothing without enable_fusion.
template <typename Match, typename Fill>
Status fuse_all(pte::Graph& graph, const graph::DeviceFacts& device, Match match, Fill fill);

void apply_rewrites(const std::vector<Rewrite>& rewrites, pte::Graph& graph);

uint32_t add_value(pte::Graph& graph, pte::GraphValue value);
// A tensor with memory of its own until place_activations() finds it better.
uint32_t add_activation(pte::Graph& graph, pte::GraphTensor tensor);

template <typename Match, typename Fill>
Status fuse_all(pte::Graph& graph, const graph::DeviceFacts& device, Match match, Fill fill) {
  if (!device.options.enable_fusion) {
    return ok_status();
  }
  std::vector<typename decltype(match(GraphIndex(graph), 0))::value_type> matches;
  {
    const GraphIndex index(graph);
    for (size_t call = 0; call < graph.chain.size(); ++call) {
      auto found = match(index, call);
      if (found && (matches.empty() || !overlap(matches.back().rewrite, found->rewrite))) {
        matches.push_back(std::move(*found));
      }
    }
  }
  std::vector<Rewrite> rewrites;
  for (auto& found : matches) {
    fill(found);
    rewrites.push_back(std::move(found.rewrite));
  }
  apply_rewrites(rewrites, graph);
  return ok_status();
}

}  // namespace ptero::passes
