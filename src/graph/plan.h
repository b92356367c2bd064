// SPDX-License-Identifier: BSD-3-Clause
// The outcome of planning: what runs for one set of live shapes. Plain data, no GPU objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "gpu/step.h"
#include "gpu/wgsl.h"
#include "graph/scalars.h"
#include "graph/shape.h"

namespace ptero::graph {

// Shapes and scalars as one call meets them; by value id.
struct LiveValues {
  std::vector<Shape> shapes;
  std::vector<ScalarState> scalars;  // of SymInts
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
  std::optional<LiveGrid> live_grid;

  bool operator==(const PlannedDispatch&) const = default;
};

struct PlannedCopy {
  uint32_t source = 0;  // storages
  uint32_t target = 0;
  uint64_t bytes = 0;  // from the start of each; a multiple of 4
  uint32_t call = 0;

  bool operator==(const PlannedCopy&) const = default;
};

// A graph, or a segment of one: it ends before an operator that makes a shape of a SymInt which
// only the device knows. The segments of a graph are run one after the other, each planned when the
// SymInts of the one before have been read back.
struct Plan {
  std::vector<std::variant<PlannedDispatch, PlannedCopy>> commands;
  std::vector<uint64_t> scratch;     // bytes of each scratch buffer
  std::vector<Shape> output_shapes;  // in the order of pte::Graph::outputs; empty for a SymInt

  // SymInts whose value an operator made a shape of, with that value: the plan holds only while
  // they are the same. Those that follow from input shapes alone are not among them.
  std::vector<std::pair<uint32_t, int64_t>> scalars_read;
  std::vector<ScalarStep> scalar_steps;    // what the host computes for each run
  std::vector<ScalarCheck> scalar_checks;  // and what must be true of it
  std::vector<uint32_t> device_scalars;    // SymInts that only the device knows when this ends
  std::vector<size_t> live_grids;          // commands with a live grid
  std::vector<size_t> inputs_asked;        // graph inputs that a SymInt is taken from

  // Of a segment that is not the last.
  std::optional<uint32_t> awaits;          // the SymInt that the next operator makes a shape of
  size_t next_call = 0;                    // that operator
  std::shared_ptr<const LiveValues> live;  // as that operator finds them

  size_t splits = 0;  // segments before this one
  // Device SymInts are read back after the last segment too: one is checked, or is an output.
  bool reads_scalars = false;

  size_t dispatches() const;
};

}  // namespace ptero::graph
