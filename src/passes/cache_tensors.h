// SPDX-License-Identifier: BSD-3-Clause
// Private to src/passes: which tensors are KV caches, and changing them with what they start from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "pte/graph.h"

namespace ptero::passes {

inline constexpr std::string_view kPrepack = "et_vk.prepack.default";

// Where an operator takes caches.
struct CacheArguments {
  std::string_view name;
  std::vector<size_t> positions;
  bool writes = false;
};
// Null for an operator that takes none.
const CacheArguments* cache_arguments(std::string_view name);

// Tensors of the given types that attention's operators write into.
std::set<uint32_t> written_caches(const pte::Graph& graph, const std::set<pte::GraphDtype>& types);

// Without those that anything else touches, or that go in or out, and without the partners of
// these: attention takes two caches of one kind.
std::set<uint32_t> only_caches(std::set<uint32_t> caches, const pte::Graph& graph);

// Calls `change` for each cache and for the constants that are prepacked into caches, which get a
// tensor of their own where others read them too.
void change_caches(pte::Graph& graph, const std::set<uint32_t>& caches,
                   const std::function<void(uint32_t id)>& change);

}  // namespace ptero::passes
