// SPDX-License-Identifier: BSD-3-Clause
// What an operator is to Ptero: a pure function from live shapes and scalars to dispatches, with a
// few facts that hold at every shape. The same function serves loading and every later shape.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace ptero::graph {

class OpCall;

using OperatorFunction = std::function<Status(OpCall&)>;

struct OperatorTraits {
  // The output holds the bytes of argument 0 in the same order, at every shape where both have one
  // element type: it may share its memory. The function is still called, for the shape, and records
  // a copy when it may not.
  bool view = false;
  // A view of a constant whose bytes are taken once, at load, and never again (prepack): an output
  // that is written in place keeps what was written. Needs `view`.
  bool at_load = false;
  // Arguments that are written in place (KV caches), besides outputs that have contents already.
  std::vector<uint8_t> mutates;
};

struct Operator {
  std::string name;  // as in the file: "aten.add.Tensor"
  OperatorFunction plan;
  OperatorTraits traits;
};

// Operators by name. Filled once, then only read.
class OperatorRegistry {
 public:
  // A second operator of the same name is an internal error, kept for status().
  void add(std::string name, OperatorFunction plan, OperatorTraits traits = {});

  const Operator* find(std::string_view name) const;  // null when there is none
  std::vector<std::string_view> names() const;        // sorted
  Status status() const;

 private:
  std::unordered_map<std::string, Operator> operators_;
  std::string duplicate_;
};

}  // namespace ptero::graph
