// SPDX-License-Identifier: BSD-3-Clause
// A method as boxes and arrows: what a drawing shows and what it leaves out. Views, sizes and
// prepacks are folded into the arrows, constants into the boxes that use them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/load.h"
#include "inspect/op_table.h"

namespace ptero::inspect {

struct Arrow {
  size_t from = 0;    // index into Sketch::boxes; before the box that has the arrow
  std::string label;  // "[1, S, 576]"; "pos" for an integer
  bool integer = false;

  bool operator==(const Arrow&) const = default;
};

struct Box {
  enum class Kind { input, output, graph_call, host_call, foreign_delegate };

  Kind kind = Kind::graph_call;
  Family family = Family::unknown;
  std::string title;   // "linear_q4gsw"
  std::string detail;  // "576 -> 192, 54.00 KiB"; may be empty
  std::string same;    // boxes that differ in it are never taken for repetitions of each other
  std::optional<size_t> delegate;
  std::vector<Arrow> arrows;  // what it uses, in argument order
};

struct Sketch {
  std::string method;
  std::vector<Box> boxes;  // in the order of execution; inputs first, outputs last
  size_t calls = 0;        // that the boxes stand for, with the folded ones
};

// `plan` has instructions.
Sketch make_sketch(const LoadedProgram& loaded, size_t plan);

}  // namespace ptero::inspect
