// SPDX-License-Identifier: BSD-3-Clause
#include "graph/operator.h"

#include <algorithm>
#include <utility>

namespace ptero::graph {

void OperatorRegistry::add(std::string name, OperatorFunction plan, OperatorTraits traits) {
  std::string key = name;
  const auto [place, added] = operators_.try_emplace(
      std::move(key), Operator{std::move(name), std::move(plan), std::move(traits)});
  if (!added) {
    duplicate_ = place->first;
  }
}

const Operator* OperatorRegistry::find(std::string_view name) const {
  const auto found = operators_.find(std::string(name));
  return found == operators_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> OperatorRegistry::names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, op] : operators_) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status OperatorRegistry::status() const {
  PTERO_REJECT_IF(!duplicate_.empty(), internal, "Operator ({}) is registered twice.", duplicate_);
  return ok_status();
}

}  // namespace ptero::graph
