// SPDX-License-Identifier: BSD-3-Clause
// Which dimensions of a graph's tensors change from run to run, and with what. A file stores only
// the largest shape of every tensor; the names come from following sizes through the graph: a
// dimension that sym_size.int reads gets a letter, and every operator with a known shape rule hands
// it on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pte/graph.h"

namespace ptero::inspect {

struct Dim {
  uint64_t size = 0;   // the largest, when it changes
  std::string symbol;  // "S", or "S+1"; empty: does not change, as far as can be seen
  bool maybe = false;  // may be smaller, but nothing in the file says whether it is

  bool operator==(const Dim&) const = default;
};
using Shape = std::vector<Dim>;

// "[1, S<=127, 576]", or "[1, S, 576]" without bounds.
std::string to_string(const Shape& shape, bool with_bounds = true);

// A sum of named sizes and a number: what a SymInt is as far as inspect follows it.
struct SymbolicInt {
  std::map<std::string, int64_t> terms;  // none with factor 0
  int64_t constant = 0;

  bool operator==(const SymbolicInt&) const = default;
};
std::string to_string(const SymbolicInt& value);

struct ShapeTable {
  std::vector<Shape> tensors;                        // by value id; empty for other values
  std::vector<std::optional<SymbolicInt>> integers;  // by value id; set for ints and known SymInts
};

// `inputs`: what is known of the shapes of graph.inputs from outside, one per input, or empty.
ShapeTable trace_shapes(const pte::Graph& graph, const std::vector<std::optional<Shape>>& inputs);

}  // namespace ptero::inspect
