// SPDX-License-Identifier: BSD-3-Clause
// Text cut where something matches. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/regex.h"

namespace ptero::text {

// What becomes of the parts of a text that match, and of those between them.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct Part {
  size_t start = 0;
  size_t end = 0;
  bool match = false;
};

// The parts of valid UTF-8 in order, none of them empty.
Status parts_of(const Regex& regex, std::string_view text, bool invert, std::vector<Part>& parts);
using Predicate = std::function<bool(uint32_t)>;
void parts_of(const Predicate& predicate, std::string_view text, std::vector<Part>& parts);

std::vector<Part> arrange(const std::vector<Part>& parts, Behavior behavior);

}  // namespace ptero::text
