// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <utility>

#include "passes/graph_index.h"
#include "passes/passes.h"

namespace ptero::passes {
namespace {

// Tensors that are copies of each other, from the call that makes the first to the last that takes
// one.
struct Group {
  std::vector<uint32_t> members;
  uint64_t bytes = 0;
  size_t first = 0;
  size_t last = 0;
};

struct Memory {
  uint64_t bytes = 0;
  std::vector<std::pair<size_t, size_t>> taken;  // calls, both included

  bool free(const Group& group) const {
    return std::none_of(taken.begin(), taken.end(), [&](const auto& interval) {
      return group.first <= interval.second && interval.first <= group.last;
    });
  }
};

class Placer {
 public:
  explicit Placer(pte::Graph& graph)
      : graph_(graph), index_(graph), life_(graph.values.size()), movable_(graph.values.size()) {}

  Status place() {
    find_lives();
    PTERO_ASSIGN_OR_RETURN(std::vector<Group> groups, make_groups());
    // Large ones first: what is small fits in between.
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
    std::vector<Memory> memories;
    for (const Group& group : groups) {
      auto memory = std::find_if(memories.begin(), memories.end(),
                                 [&](const Memory& each) { return each.free(group); });
      // Among those that are free the smallest, which here is the last of them that is as large.
      for (auto next = memory; next != memories.end(); ++next) {
        if (next->free(group) && next->bytes < memory->bytes) {
          memory = next;
        }
      }
      if (memory == memories.end()) {
        memories.push_back({group.bytes, {}});
        memory = memories.end() - 1;
      }
      memory->taken.emplace_back(group.first, group.last);
      for (const uint32_t id : group.members) {
        tensor(id).mem_obj_id = static_cast<uint32_t>(memory - memories.begin());
      }
    }
    return ok_status();
  }

 private:
  struct Life {
    size_t first = SIZE_MAX;
    size_t last = 0;
  };

  pte::GraphTensor& tensor(uint32_t id) { return std::get<pte::GraphTensor>(graph_.values[id]); }

  template <typename Body>
  void for_each_tensor(uint32_t id, Body&& body) {
    if (const auto* list = std::get_if<pte::ValueIdList>(&graph_.values[id])) {
      for (const uint32_t item : list->ids) {
        for_each_tensor(item, body);
      }
    } else if (std::holds_alternative<pte::GraphTensor>(graph_.values[id])) {
      body(id);
    }
  }

  void find_lives() {
    for (size_t call = 0; call < graph_.chain.size(); ++call) {
      for (const uint32_t arg : graph_.chain[call].args) {
        for_each_tensor(arg, [&](uint32_t id) {
          life_[id].first = std::min(life_[id].first, call);
          life_[id].last = call;
        });
      }
    }
    for (uint32_t id = 0; id < graph_.values.size(); ++id) {
      auto* value = std::get_if<pte::GraphTensor>(&graph_.values[id]);
      if (value != nullptr && value->mem_obj_id && !value->constant_id) {
        movable_[id] = index_.producer(id).has_value();
        value->mem_obj_id.reset();
      }
    }
    for (const uint32_t id : graph_.outputs) {
      movable_[id] = false;
    }
  }

  Result<std::vector<Group>> make_groups() {
    std::vector<Group> groups;
    std::vector<size_t> group_of(graph_.values.size(), SIZE_MAX);
    for (const pte::OperatorCall& call : graph_.chain) {
      std::vector<uint32_t> made;
      for_each_tensor(call.args.back(), [&](uint32_t id) { made.push_back(id); });
      for (const uint32_t id : made) {
        if (!movable_[id] || group_of[id] != SIZE_MAX) {
          continue;
        }
        std::set<size_t> ignored;
        const uint32_t source = index_.behind_views(id, ignored);
        if (group_of[source] == SIZE_MAX) {
          groups.push_back({{}, 0, life_[id].first, life_[id].last});
          group_of[id] = groups.size() - 1;
        } else {
          group_of[id] = group_of[source];
        }
        Group& group = groups[group_of[id]];
        PTERO_ASSIGN_OR_RETURN(const uint64_t bytes,
                               pte::tensor_bytes(tensor(id).dtype, tensor(id).dims));
        group.members.push_back(id);
        group.bytes = std::max(group.bytes, bytes);
        group.first = std::min(group.first, life_[id].first);
        group.last = std::max(group.last, life_[id].last);
      }
    }
    return groups;
  }

  pte::Graph& graph_;
  GraphIndex index_;
  std::vector<Life> life_;
  std::vector<bool> movable_;
};

}  // namespace

Status place_activations(pte::Graph& graph, const graph::DeviceFacts& device) {
  return device.options.enable_fusion ? Placer(graph).place() : ok_status();
}

}  // namespace ptero::passes
