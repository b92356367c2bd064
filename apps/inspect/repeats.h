// SPDX-License-Identifier: BSD-3-Clause
// Finds the layers of a network: stretches of boxes that repeat, wired alike.
#pragma once

#include <cstddef>
#include <vector>

#include "inspect/sketch.h"

namespace ptero::inspect {

// boxes [start, start + size), the same again `count` times in a row. The boxes of each repetition
// take their inputs from the same places: from within, from the repetition before (in the first:
// from anywhere before) or from one shared box before all of them.
struct Repeat {
  size_t start = 0;
  size_t size = 0;
  size_t count = 0;

  bool operator==(const Repeat&) const = default;
};

// In rising order, without overlap; the ones that cover most come first in doubt. Looks at
// stretches of 3 to 500 boxes.
std::vector<Repeat> find_repeats(const std::vector<Box>& boxes);

}  // namespace ptero::inspect
