// SPDX-License-Identifier: BSD-3-Clause
// Which values share which memory. Decided once, when a graph is loaded, from the file's ids and
// from what operators say about themselves; true at every live shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "graph/operator.h"
#include "graph/scalars.h"
#include "pte/graph.h"

namespace ptero::graph {

// One GPU buffer.
struct Storage {
  std::string label;
  uint64_t bytes = 0;  // for the largest shapes of everything in it; above 0
  gpu::MemoryKind kind = gpu::MemoryKind::activations;
  // Contents at load: index into pte::Graph::constants. None: zeros.
  std::optional<uint32_t> constant;
};

// The rules, in order:
// - A tensor that no call names and that is neither input nor output has no storage.
// - A tensor with a constant takes it before any memory id. Constants with the same bytes (one
//   named key) share a storage, unless an operator writes into one: each KV cache is its own, and
//   lives as long as the session.
// - Tensors with the same memory id share a storage of the largest one's size.
// - Every other tensor has its own.
// - The output of a view operator moves to the storage of its input, if nothing else writes there
//   while the output is still needed and the output is not written in place.
// - What an at_load operator makes of a constant shares the constant's storage, or starts from the
//   same bytes in a storage of its own where one of the two is written in place. Nothing is copied
//   as the graph runs.
// A value is written in place by an operator that says so, and by a call that produces it although
// it has contents: it is a constant, a graph input, or an earlier call produced it.
struct MemoryPlan {
  std::vector<std::optional<uint32_t>> storage_of;  // by value id; none: no tensor, or unused
  std::vector<Storage> storages;
  std::vector<bool> aliases;  // by operator call: its output is its input, nothing to copy
  SlotTable slots;
  std::optional<uint32_t> slot_storage;  // where the slots are; none: there is no slot

  uint64_t bytes(gpu::MemoryKind kind) const;
};

// Code unsupported for an operator that the registry lacks, with every such name in the sentence.
Result<MemoryPlan> plan_memory(const pte::Graph& graph, const OperatorRegistry& operators);

}  // namespace ptero::graph
