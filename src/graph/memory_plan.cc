// SPDX-License-Identifier: BSD-3-Clause
#include "graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/checked.h"

namespace ptero::graph {
namespace {

using pte::GraphTensor;
using pte::ValueIdList;

// When a value comes to be and when it is last looked at, counted in operator calls.
struct Life {
  int64_t defined = -1;  // -1: before the first call
  int64_t last_use = -1;
};

class Builder {
 public:
  Builder(const pte::Graph& graph, const OperatorRegistry& operators)
      : graph_(graph), operators_(operators) {}

  Result<MemoryPlan> build() {
    PTERO_RETURN_IF_ERROR(find_operators());
    find_lives();
    PTERO_RETURN_IF_ERROR(place_tensors());
    plan_.aliases.assign(graph_.chain.size(), false);
    for (size_t call = 0; call < graph_.chain.size(); ++call) {
      if (calls_[call]->traits.view) {
        plan_.aliases[call] = calls_[call]->traits.at_load ? take_at_load(call) : try_alias(call);
      }
    }
    drop_unused_storages();
    plan_.slots = SlotTable::of(graph_);
    if (!plan_.slots.initial.empty()) {
      plan_.slot_storage = add_storage("scalars", plan_.slots.initial.size() * sizeof(int32_t),
                                       gpu::MemoryKind::other);
    }
    return std::move(plan_);
  }

 private:
  const GraphTensor* tensor(uint32_t id) const {
    return std::get_if<GraphTensor>(&graph_.values[id]);
  }

  // The tensors behind one argument: itself, or the items of a list.
  template <typename Body>
  void for_each_tensor(uint32_t id, Body&& body) const {
    if (tensor(id) != nullptr) {
      body(id);
    } else if (const auto* list = std::get_if<ValueIdList>(&graph_.values[id])) {
      for (const uint32_t item : list->ids) {
        if (tensor(item) != nullptr) {
          body(item);
        }
      }
    }
  }

  Status find_operators() {
    std::set<std::string> missing;
    for (const pte::OperatorCall& call : graph_.chain) {
      calls_.push_back(operators_.find(call.name));
      if (calls_.back() == nullptr) {
        missing.insert(call.name);
      }
      PTERO_REJECT_IF(call.args.empty(), invalid_program, "Operator ({}) has no arguments.",
                      call.name);
    }
    PTERO_REJECT_IF(!missing.empty(), unsupported, "This build does not run operator{} {}.",
                    missing.size() == 1 ? "" : "s", fmt::format("{}", fmt::join(missing, ", ")));
    return ok_status();
  }

  void find_lives() {
    lives_.resize(graph_.values.size());
    mutated_at_.resize(graph_.values.size());
    uses_.resize(graph_.values.size());
    std::vector<bool> has_contents(graph_.values.size());
    for (uint32_t id = 0; id < graph_.values.size(); ++id) {
      has_contents[id] = tensor(id) != nullptr && tensor(id)->constant_id.has_value();
    }
    for (const uint32_t id : graph_.inputs) {
      has_contents[id] = true;
    }
    for (size_t i = 0; i < graph_.chain.size(); ++i) {
      const int64_t now = static_cast<int64_t>(i);
      const std::vector<uint32_t>& args = graph_.chain[i].args;
      for (const uint32_t arg : args) {
        for_each_tensor(arg, [&](uint32_t id) {
          lives_[id].last_use = now;
          ++uses_[id];
        });
      }
      for_each_tensor(args.back(), [&](uint32_t id) {
        if (has_contents[id]) {
          mutated_at_[id].push_back(now);
        } else {
          lives_[id].defined = now;
          has_contents[id] = true;
        }
      });
      for (const uint8_t position : calls_[i]->traits.mutates) {
        if (position < args.size()) {
          for_each_tensor(args[position], [&](uint32_t id) { mutated_at_[id].push_back(now); });
        }
      }
    }
    for (const uint32_t id : graph_.outputs) {
      lives_[id].last_use = static_cast<int64_t>(graph_.chain.size());
      ++uses_[id];
    }
  }

  // Passes leave values behind that nothing names any more.
  bool is_used(uint32_t id) const {
    return uses_[id] > 0 ||
           std::find(graph_.inputs.begin(), graph_.inputs.end(), id) != graph_.inputs.end();
  }

  Status place_tensors() {
    plan_.storage_of.resize(graph_.values.size());
    std::map<std::string, uint32_t> by_key;
    std::map<uint32_t, uint32_t> by_memory_id;
    for (uint32_t id = 0; id < graph_.values.size(); ++id) {
      const GraphTensor* value = tensor(id);
      if (value == nullptr || !is_used(id)) {
        continue;
      }
      PTERO_ASSIGN_OR_RETURN(const uint64_t bytes, pte::tensor_bytes(value->dtype, value->dims),
                             "while placing value {}", id);
      if (value->constant_id) {
        place_constant(id, *value, bytes, by_key);
      } else if (value->mem_obj_id) {
        const auto [place, added] = by_memory_id.try_emplace(
            *value->mem_obj_id, static_cast<uint32_t>(plan_.storages.size()));
        if (added) {
          add_storage(fmt::format("memory {}", *value->mem_obj_id), 0,
                      gpu::MemoryKind::activations);
        }
        assign(id, place->second, bytes);
      } else {
        assign(id, add_storage(fmt::format("value {}", id), 0, gpu::MemoryKind::activations),
               bytes);
      }
    }
    return ok_status();
  }

  void place_constant(uint32_t id, const GraphTensor& value, uint64_t bytes,
                      std::map<std::string, uint32_t>& by_key) {
    const pte::GraphConstant& constant = graph_.constants[*value.constant_id];
    const bool is_cache = !mutated_at_[id].empty();
    if (!is_cache && !constant.named_key.empty()) {
      if (const auto same = by_key.find(constant.named_key);
          same != by_key.end() && plan_.storages[same->second].bytes == rounded(bytes)) {
        plan_.storage_of[id] = same->second;
        return;
      }
    }
    const uint32_t storage =
        add_storage(fmt::format("{} {}", is_cache ? "cache" : "constant", id), 0,
                    is_cache ? gpu::MemoryKind::cache : gpu::MemoryKind::weights);
    plan_.storages[storage].constant = *value.constant_id;
    assign(id, storage, bytes);
    if (!is_cache && !constant.named_key.empty()) {
      by_key.emplace(constant.named_key, storage);
    }
  }

  // Buffers hold whole words, and an empty tensor still needs something to bind.
  static uint64_t rounded(uint64_t bytes) {
    return std::max<uint64_t>(4, ceil_div<uint64_t>(bytes, 4) * 4);
  }

  uint32_t add_storage(std::string label, uint64_t bytes, gpu::MemoryKind kind) {
    plan_.storages.push_back({std::move(label), bytes, kind, std::nullopt});
    return static_cast<uint32_t>(plan_.storages.size() - 1);
  }

  void assign(uint32_t id, uint32_t storage, uint64_t bytes) {
    plan_.storage_of[id] = storage;
    plan_.storages[storage].bytes = std::max(plan_.storages[storage].bytes, rounded(bytes));
  }

  // Whether a view's argument and result are two tensors of the same size.
  bool same_bytes(uint32_t input, uint32_t output) const {
    const GraphTensor* from = tensor(input);
    const GraphTensor* to = tensor(output);
    if (from == nullptr || to == nullptr || input == output || from->dtype != to->dtype) {
      return false;
    }
    const Result<uint64_t> from_bytes = pte::tensor_bytes(from->dtype, from->dims);
    const Result<uint64_t> to_bytes = pte::tensor_bytes(to->dtype, to->dims);
    return from_bytes.ok() && to_bytes.ok() && *from_bytes == *to_bytes;
  }

  bool take_at_load(size_t index) {
    const uint32_t input = graph_.chain[index].args.front();
    const uint32_t output = graph_.chain[index].args.back();
    if (!same_bytes(input, output) || !tensor(input)->constant_id || tensor(output)->constant_id) {
      return try_alias(index);
    }
    const bool output_is_cache = !mutated_at_[output].empty();
    if (output_is_cache || !mutated_at_[input].empty()) {
      const uint64_t bytes = plan_.storages[*plan_.storage_of[input]].bytes;
      const uint32_t storage =
          add_storage(fmt::format("{} {}", output_is_cache ? "cache" : "constant", output), bytes,
                      output_is_cache ? gpu::MemoryKind::cache : gpu::MemoryKind::weights);
      plan_.storages[storage].constant = *tensor(input)->constant_id;
      plan_.storage_of[output] = storage;
      if (uses_[input] == 1) {
        plan_.storage_of[input] = storage;  // nobody else reads it: keep it once
      }
      return true;
    }
    plan_.storage_of[output] = *plan_.storage_of[input];
    return true;
  }

  bool try_alias(size_t index) {
    const uint32_t input = graph_.chain[index].args.front();
    const uint32_t output = graph_.chain[index].args.back();
    if (!same_bytes(input, output) || !mutated_at_[output].empty()) {
      return false;
    }
    const uint32_t storage = *plan_.storage_of[input];
    const int64_t now = static_cast<int64_t>(index);
    for (uint32_t id = 0; id < graph_.values.size(); ++id) {
      if (plan_.storage_of[id] != storage) {
        continue;
      }
      // Somebody writes this memory, as an output or in place, while the output is still needed.
      const auto disturbs = [&](int64_t when) {
        return when > now && when <= lives_[output].last_use;
      };
      if (disturbs(lives_[id].defined) ||
          std::any_of(mutated_at_[id].begin(), mutated_at_[id].end(), disturbs)) {
        return false;
      }
    }
    plan_.storage_of[output] = storage;
    return true;
  }

  void drop_unused_storages() {
    std::vector<std::optional<uint32_t>> renumbered(plan_.storages.size());
    std::vector<Storage> kept;
    for (std::optional<uint32_t>& storage : plan_.storage_of) {
      if (storage) {
        if (!renumbered[*storage]) {
          renumbered[*storage] = static_cast<uint32_t>(kept.size());
          kept.push_back(std::move(plan_.storages[*storage]));
        }
        storage = renumbered[*storage];
      }
    }
    plan_.storages = std::move(kept);
  }

  const pte::Graph& graph_;
  const OperatorRegistry& operators_;
  MemoryPlan plan_;
  std::vector<const Operator*> calls_;
  std::vector<Life> lives_;
  std::vector<uint32_t> uses_;  // by value: arguments that name it, and graph outputs
  std::vector<std::vector<int64_t>> mutated_at_;  // by value: calls that write it in place
};

}  // namespace

uint64_t MemoryPlan::bytes(gpu::MemoryKind kind) const {
  uint64_t total = 0;
  for (const Storage& storage : storages) {
    total += storage.kind == kind ? storage.bytes : 0;
  }
  return total;
}

Result<MemoryPlan> plan_memory(const pte::Graph& graph, const OperatorRegistry& operators) {
  return Builder(graph, operators).build();
}

}  // namespace ptero::graph
