// SPDX-License-Identifier: BSD-3-Clause
// Symbolic integers (SymInt) as a graph runs. Each has a value on the host where the host can know
// it (from inputs in host memory, from shapes, and by arithmetic on those), and a slot on the
// device that kernels read. A plan holds for every value of a SymInt unless an operator asked for
// the value itself, as it must to make a shape of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pte/graph.h"

namespace ptero::graph {

// By value id; empty where the host does not know it, or the value is not a SymInt.
using ScalarValues = std::vector<std::optional<int64_t>>;

// What planning knows of a SymInt.
struct ScalarState {
  enum class Where : uint8_t { unset, host, device };

  Where where = Where::unset;
  int64_t value = 0;  // now; only on the host
  // The value is that of SymInt `base` plus `offset` at every run of the plan; without a base it
  // follows from the shapes alone.
  std::optional<uint32_t> base;
  int64_t offset = 0;
};

// An Int, or a SymInt by its value id.
struct ScalarOperand {
  std::optional<uint32_t> id;
  int64_t constant = 0;

  bool operator==(const ScalarOperand&) const = default;
};

struct ScalarFunction {
  std::string_view name;
  Result<int64_t> (*compute)(int64_t a, int64_t b);
  int sum = 0;  // 1: a + b; -1: a - b; 0: something else
};

// How the host comes to one SymInt, in each run.
struct ScalarStep {
  enum class Kind : uint8_t { constant, element, function };

  Kind kind = Kind::constant;
  uint32_t id = 0;
  int64_t constant = 0;
  size_t input = 0;      // position in pte::Graph::inputs
  uint64_t element = 0;  // of that input
  const ScalarFunction* function = nullptr;
  ScalarOperand a;
  ScalarOperand b;
  uint32_t call = 0;
};

// The dispatches of a call are right for these values only.
struct ScalarCheck {
  uint32_t id = 0;
  int64_t lowest = 0;
  int64_t highest = 0;
  uint32_t call = 0;
  size_t arg = 0;
};

// A grid that follows a SymInt: ceil((value + add) / divide) workgroups along an axis, at least 1
// and at most what the dispatch has.
struct LiveGrid {
  uint8_t axis = 0;
  uint32_t id = 0;
  int64_t add = 0;
  uint32_t divide = 1;

  bool operator==(const LiveGrid&) const = default;
};

// Every Int, integral Double and SymInt of a graph that fits 32 bits has a slot, so that kernels
// read all of them alike.
struct SlotTable {
  std::vector<std::optional<uint32_t>> slot_of;  // by value id
  std::vector<int32_t> initial;                  // by slot: Ints; 0 for a SymInt

  static SlotTable of(const pte::Graph& graph);
};

// What a kernel writes for a SymInt that does not fit 32 bits.
inline constexpr int32_t kNoScalar = INT32_MIN;

// The integer that a constant value holds: an Int, or a Double that is whole.
std::optional<int64_t> constant_integer(const pte::GraphValue& value);

// a - b, unless that exceeds 64 bits.
std::optional<int64_t> difference(int64_t a, int64_t b);

// One element of the dense bytes of an integer tensor. Code unsupported for other types.
Result<int64_t> integer_element(const pte::GraphTensor& tensor, std::span<const std::byte> bytes,
                                uint64_t element);

// Runs the steps; `inputs` are the dense bytes of the graph's inputs. Errors: invalid_argument
// (division by zero, 64 bits exceeded), with the operator as context.
Status evaluate(std::span<const ScalarStep> steps, const pte::Graph& graph,
                std::span<const std::span<const std::byte>> inputs, ScalarValues& values);

// invalid_argument for the first check that a known value fails.
Status check_scalars(std::span<const ScalarCheck> checks, const pte::Graph& graph,
                     const ScalarValues& values);

}  // namespace ptero::graph
