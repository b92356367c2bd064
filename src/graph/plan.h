// SPDX-License-Identifier: BSD-3-Clause
// The outcome of planning: what runs for one set of live shapes. Plain data, no GPU objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/step.h"
#include "gpu/wgsl.h"
#include "graph/shape.h"

namespace ptero::graph {

// Shapes and scalars as one call meets them; by value id.
struct LiveValues {
  std::vector<Shape> shapes;
  std::vector<std::optional<int64_t>> scalars;  // of SymInts, once known
};

struct PlannedBinding {
  bool is_scratch = false;
  uint32_t id = 0;  // storage of the MemoryPlan, or index into Plan::scratch
  uint64_t offset = 0;
  uint64_t size = 0;  // 0: to the end

  bool operator==(const PlannedBinding&) const = default;
};

struct PlannedDispatch {
  gpu::KernelKey kernel;
  std::vector<PlannedBinding> bindings;
  std::vector<std::byte> params;
  gpu::Grid grid;
  uint32_t call = 0;  // the operator call it belongs to

  bool operator==(const PlannedDispatch&) const = default;
};

struct PlannedCopy {
  uint32_t source = 0;  // storages
  uint32_t target = 0;
  uint64_t bytes = 0;  // from the start of each; a multiple of 4
  uint32_t call = 0;

  bool operator==(const PlannedCopy&) const = default;
};

struct Plan {
  std::vector<std::variant<PlannedDispatch, PlannedCopy>> commands;
  std::vector<uint64_t> scratch;     // bytes of each scratch buffer
  std::vector<Shape> output_shapes;  // in the order of pte::Graph::outputs; empty for a SymInt
  std::vector<std::optional<int64_t>> output_scalars;  // the same; only for a SymInt
  // SymInts whose value an operator turned into shapes or parameters, with that value: the plan
  // holds only while they are the same.
  std::vector<std::pair<uint32_t, int64_t>> scalars_read;

  size_t dispatches() const;
};

}  // namespace ptero::graph
