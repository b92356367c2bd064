// SPDX-License-Identifier: BSD-3-Clause
#include "passes/cache_tensors.h"

#include <algorithm>
#include <array>
#include <variant>

namespace ptero::passes {
namespace {

using pte::GraphTensor;

// Without this tensor, or those of this list.
void drop_from(std::set<uint32_t>& ids, const pte::Graph& graph, uint32_t id) {
  ids.erase(id);
  if (const auto* list = std::get_if<pte::ValueIdList>(&graph.values[id])) {
    for (const uint32_t item : list->ids) {
      ids.erase(item);
    }
  }
}

class CacheFilter {
 public:
  CacheFilter(std::set<uint32_t> caches, const pte::Graph& graph)
      : graph_(graph), caches_(std::move(caches)) {}

  std::set<uint32_t> filter() {
    for (const uint32_t id : graph_.inputs) {
      caches_.erase(id);
    }
    for (const uint32_t id : graph_.outputs) {
      caches_.erase(id);
    }
    for (const pte::OperatorCall& call : graph_.chain) {
      drop_other_uses(call);
    }
    for (bool dropped = true; dropped;) {
      dropped = false;
      for (const pte::OperatorCall& call : graph_.chain) {
        dropped = drop_partners(call) || dropped;
      }
    }
    return std::move(caches_);
  }

 private:
  void drop_other_uses(const pte::OperatorCall& call) {
    const CacheArguments* where = cache_arguments(call.name);
    for (size_t i = 0; i < call.args.size(); ++i) {
      const bool is_cache =
          where != nullptr && std::count(where->positions.begin(), where->positions.end(), i) > 0;
      // What update_cache produces may be the cache.
      const bool is_result = where != nullptr && where->positions.size() == 1 &&
                             i + 1 == call.args.size() &&
                             call.args[i] == call.args[where->positions[0]];
      const bool starts =
          call.name == kPrepack && i == 1 && call.args.size() == 2 && is_start(call);
      if (!is_cache && !is_result && !starts) {
        drop_from(caches_, graph_, call.args[i]);
      }
    }
  }

  // From a constant to a tensor of its type that is none.
  bool is_start(const pte::OperatorCall& call) const {
    const auto* from = std::get_if<GraphTensor>(&graph_.values[call.args[0]]);
    const auto* to = std::get_if<GraphTensor>(&graph_.values[call.args[1]]);
    return from != nullptr && to != nullptr && from->constant_id && !to->constant_id &&
           from->dtype == to->dtype;
  }

  bool drop_partners(const pte::OperatorCall& call) {
    const CacheArguments* where = cache_arguments(call.name);
    if (where == nullptr || where->positions.size() != 2 ||
        call.args.size() <= where->positions[1]) {
      return false;
    }
    const uint32_t k = call.args[where->positions[0]];
    const uint32_t v = call.args[where->positions[1]];
    if (caches_.contains(k) == caches_.contains(v)) {
      return false;
    }
    caches_.erase(k);
    caches_.erase(v);
    return true;
  }

  const pte::Graph& graph_;
  std::set<uint32_t> caches_;
};

}  // namespace

const CacheArguments* cache_arguments(std::string_view name) {
  static const std::array<CacheArguments, 4> list = {{
      {"sdpa_with_kv_cache.default", {3, 4}, true},
      {"custom_sdpa.default", {1, 2}, false},
      {"update_cache.default", {1}, true},
      {"update_cache_with_indices.default", {1}, true},
  }};
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const CacheArguments& each) { return each.name == name; });
  return found != list.end() ? &*found : nullptr;
}

std::set<uint32_t> written_caches(const pte::Graph& graph, const std::set<pte::GraphDtype>& types) {
  std::set<uint32_t> caches;
  for (const pte::OperatorCall& call : graph.chain) {
    const CacheArguments* where = cache_arguments(call.name);
    if (where == nullptr || !where->writes) {
      continue;
    }
    for (const size_t position : where->positions) {
      const auto* tensor = position < call.args.size()
                               ? std::get_if<GraphTensor>(&graph.values[call.args[position]])
                               : nullptr;
      if (tensor != nullptr && types.contains(tensor->dtype)) {
        caches.insert(call.args[position]);
      }
    }
  }
  return caches;
}

std::set<uint32_t> only_caches(std::set<uint32_t> caches, const pte::Graph& graph) {
  return CacheFilter(std::move(caches), graph).filter();
}

void change_caches(pte::Graph& graph, const std::set<uint32_t>& caches,
                   const std::function<void(uint32_t id)>& change) {
  const auto fills_cache = [&](const pte::OperatorCall& call) {
    return call.name == kPrepack && caches.contains(call.args.back());
  };
  std::set<uint32_t> sources;  // of caches alone
  for (const pte::OperatorCall& call : graph.chain) {
    if (fills_cache(call)) {
      sources.insert(call.args[0]);
    }
  }
  for (const pte::OperatorCall& call : graph.chain) {
    if (!fills_cache(call)) {
      for (const uint32_t arg : call.args) {
        drop_from(sources, graph, arg);
      }
    }
  }
  for (const uint32_t id : graph.outputs) {
    sources.erase(id);
  }
  for (const uint32_t id : sources) {
    change(id);
  }
  for (pte::OperatorCall& call : graph.chain) {
    if (fills_cache(call) && !sources.contains(call.args[0])) {
      graph.values.push_back(graph.values[call.args[0]]);
      call.args[0] = static_cast<uint32_t>(graph.values.size() - 1);
      change(call.args[0]);
    }
  }
  for (const uint32_t id : caches) {
    change(id);
  }
}

}  // namespace ptero::passes
