// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/half.h"
#include "passes/converted_source.h"
#include "passes/passes.h"

namespace ptero::passes {
namespace {

using pte::GraphTensor;

// Where operators take caches, and whether they write them.
struct CacheArguments {
  std::string_view name;
  std::vector<size_t> positions;
  bool writes = false;
};
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

constexpr std::string_view kPrepack = "et_vk.prepack.default";

// Without this tensor, or those of this list.
void drop_from(std::set<uint32_t>& ids, const pte::Graph& graph, uint32_t id) {
  ids.erase(id);
  if (const auto* list = std::get_if<pte::ValueIdList>(&graph.values[id])) {
    for (const uint32_t item : list->ids) {
      ids.erase(item);
    }
  }
}

class CacheFinder {
 public:
  explicit CacheFinder(const pte::Graph& graph) : graph_(graph) {}

  // Ids of the tensors that may change their type.
  std::set<uint32_t> find() {
    for (const pte::OperatorCall& call : graph_.chain) {
      if (const CacheArguments* where = cache_arguments(call.name); where && where->writes) {
        for (const size_t position : where->positions) {
          add(call, position);
        }
      }
    }
    for (const uint32_t id : graph_.inputs) {
      caches_.erase(id);
    }
    for (const uint32_t id : graph_.outputs) {
      caches_.erase(id);
    }
    for (const pte::OperatorCall& call : graph_.chain) {
      drop_other_uses(call);
    }
    // Attention takes two caches of one type.
    for (bool dropped = true; dropped;) {
      dropped = false;
      for (const pte::OperatorCall& call : graph_.chain) {
        dropped = drop_partners(call) || dropped;
      }
    }
    return caches_;
  }

 private:
  void add(const pte::OperatorCall& call, size_t position) {
    if (position >= call.args.size()) {
      return;
    }
    const auto* tensor = std::get_if<GraphTensor>(&graph_.values[call.args[position]]);
    if (tensor != nullptr && tensor->dtype == pte::GraphDtype::float32) {
      caches_.insert(call.args[position]);
    }
  }

  void drop_other_uses(const pte::OperatorCall& call) {
    const CacheArguments* where = cache_arguments(call.name);
    for (size_t i = 0; i < call.args.size(); ++i) {
      const bool is_cache =
          where != nullptr && std::count(where->positions.begin(), where->positions.end(), i) > 0;
      // What update_cache produces may be the cache.
      const bool is_result = where != nullptr && where->positions.size() == 1 &&
                             i + 1 == call.args.size() &&
                             call.args[i] == call.args[where->positions[0]];
      const bool starts = call.name == kPrepack && i == 1 && call.args.size() == 2 &&
                          is_constant(call.args[0]) && !is_constant(call.args[1]);
      if (!is_cache && !is_result && !starts) {
        drop_from(caches_, graph_, call.args[i]);
      }
    }
  }

  bool is_constant(uint32_t id) const {
    const auto* tensor = std::get_if<GraphTensor>(&graph_.values[id]);
    return tensor != nullptr && tensor->constant_id && tensor->dtype == pte::GraphDtype::float32;
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

// The tensor as float16 from now on, and what it starts from.
void halve(pte::Graph& graph, uint32_t id) {
  auto& tensor = std::get<GraphTensor>(graph.values[id]);
  tensor.dtype = pte::GraphDtype::float16;
  if (!tensor.constant_id) {
    return;
  }
  // Others may read the constant as it is.
  pte::GraphConstant constant = graph.constants[*tensor.constant_id];
  if (!constant.named_key.empty()) {
    constant.named_key += " in float16";
  }
  constant.data = ByteRange::whole(
      std::make_shared<ConvertedSource<float, uint16_t>>(constant.data, float_to_half));
  tensor.constant_id = static_cast<uint32_t>(graph.constants.size());
  graph.constants.push_back(std::move(constant));
}

}  // namespace

Status halve_caches(pte::Graph& graph, const graph::DeviceFacts& device) {
  if (!device.options.enable_f16_kv_cache || !device.features.contains(gpu::Feature::shader_f16)) {
    return ok_status();
  }
  const std::set<uint32_t> caches = CacheFinder(graph).find();
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
    halve(graph, id);
  }
  for (pte::OperatorCall& call : graph.chain) {
    if (fills_cache(call) && !sources.contains(call.args[0])) {
      graph.values.push_back(graph.values[call.args[0]]);
      call.args[0] = static_cast<uint32_t>(graph.values.size() - 1);
      halve(graph, call.args[0]);
    }
  }
  for (const uint32_t id : caches) {
    halve(graph, id);
  }
  return ok_status();
}

}  // namespace ptero::passes
