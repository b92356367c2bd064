// SPDX-License-Identifier: BSD-3-Clause
// From live input shapes to a Plan, and the memory of plans made before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/memory_plan.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "graph/plan.h"
#include "graph/scalars.h"
#include "pte/graph.h"

namespace ptero::graph {

// What one run brings: shapes of the tensor inputs and values of the SymInt inputs, in the order of
// pte::Graph::inputs; the other member of an entry is ignored.
struct LiveInput {
  Shape shape;
  int64_t scalar = 0;
  // Of a tensor, dense; SymInts may be taken from it on the host. Empty: on the device. Read while
  // planning only.
  std::span<const std::byte> bytes = {};

  bool operator==(const LiveInput& other) const {
    return shape == other.shape && scalar == other.scalar;
  }
};

// A plan with the SymInts of one run.
struct PlannedRun {
  std::shared_ptr<const Plan> plan;
  ScalarValues scalars;
};

// Plans graphs and remembers the plans: a run with shapes that were met before returns the same
// Plan without calling any operator function, whatever its SymInts are, unless one of them makes a
// shape. Threads: one at a time. The graph, memory plan and registry outlive it.
class Planner {
 public:
  // At most `capacity` plans are kept, the least recently used is dropped first.
  Planner(const pte::Graph& graph, const MemoryPlan& memory, const OperatorRegistry& operators,
          DeviceFacts device, size_t capacity = 64);

  // Whether shapes and their number fit the graph; plan() checks it too.
  Status check_inputs(std::span<const LiveInput> inputs) const;

  // The first segment of a run. Errors: invalid_argument when the inputs do not fit the graph
  // (rank, bounds, a dimension of 0) or a SymInt is out of range, and whatever an operator says,
  // with the call's number and name as context.
  Result<PlannedRun> plan(std::span<const LiveInput> inputs);

  // After a segment that awaits a SymInt, or that reads scalars: takes the slots as the device left
  // them. Errors: invalid_argument for a SymInt that is out of range.
  Status take_slots(PlannedRun& run, std::span<const int32_t> slots) const;
  // The segment after that one.
  Result<PlannedRun> resume(const PlannedRun& before, std::span<const LiveInput> inputs);

  // The slots that a run starts from.
  std::vector<int32_t> slots(const PlannedRun& run) const;

  // The largest inputs that the graph takes.
  Result<std::vector<LiveInput>> largest_inputs() const;
  // Every dimension 1: what a model of one token a step takes, and what others may refuse to plan.
  Result<std::vector<LiveInput>> smallest_inputs() const;

  // Of the tensors that a run of this plan gives, each a whole number of words.
  uint64_t output_bytes(const Plan& plan) const;

  // How often an operator function was called, for tests and reports.
  uint64_t operator_calls() const { return operator_calls_; }
  size_t remembered() const { return remembered_.size(); }

 private:
  Result<std::vector<LiveInput>> inputs_of(uint32_t most) const;
  struct Key {
    std::shared_ptr<const Plan> after;  // the segment before; null for the first
    std::vector<Shape> shapes;          // of the inputs; empty ones for SymInts
    std::vector<bool> on_host;          // inputs whose bytes are there, where that matters

    bool operator==(const Key&) const = default;
  };
  struct Remembered {
    Key key;
    std::shared_ptr<const Plan> plan;
  };

  // By input: the host has bytes that some operator asks for.
  std::vector<bool> bytes_that_matter(std::span<const LiveInput> inputs) const;
  // What the host may read: see OpCall.
  std::vector<std::span<const std::byte>> host_inputs(std::span<const LiveInput> inputs) const;
  LiveValues first_values(std::span<const LiveInput> inputs) const;
  // A remembered plan of this key that holds for `run.scalars`, which it completes.
  bool recall(const Key& key, std::span<const std::span<const std::byte>> bytes, PlannedRun& run);
  Result<PlannedRun> find_or_make(Key key, std::span<const LiveInput> inputs, LiveValues live,
                                  PlannedRun run);
  Result<std::shared_ptr<const Plan>> make(const Plan* after,
                                           std::span<const std::span<const std::byte>> bytes,
                                           LiveValues live);

  const pte::Graph& graph_;
  const MemoryPlan& memory_;
  const OperatorRegistry& operators_;
  DeviceFacts device_;
  size_t capacity_;
  std::vector<bool> asked_;    // inputs that some operator takes a SymInt from, as far as known
  std::vector<bool> written_;  // inputs that the graph itself changes
  std::list<Remembered> remembered_;  // most recently used first
  uint64_t operator_calls_ = 0;
};

}  // namespace ptero::graph
