// SPDX-License-Identifier: BSD-3-Clause
#include "text/split.h"

#include <algorithm>
#include <iterator>

#include "text/utf8.h"

namespace ptero::text {

std::vector<Part> arrange(const std::vector<Part>& parts, Behavior behavior) {
  std::vector<Part> out;
  out.reserve(parts.size());
  bool after_match = false;
  switch (behavior) {
    case Behavior::removed:
      std::copy_if(parts.begin(), parts.end(), std::back_inserter(out),
                   [](const Part& part) { return !part.match; });
      break;
    case Behavior::isolated:
      out = parts;
      break;
    case Behavior::contiguous:
      for (const Part& part : parts) {
        if (!out.empty() && out.back().match == part.match) {
          out.back().end = part.end;
        } else {
          out.push_back(part);
        }
      }
      break;
    case Behavior::merged_with_previous:
      for (const Part& part : parts) {
        if (part.match && !after_match && !out.empty()) {
          out.back().end = part.end;
        } else {
          out.push_back(part);
        }
        after_match = part.match;
      }
      break;
    case Behavior::merged_with_next:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (part->match && !after_match && !out.empty()) {
          out.back().start = part->start;
        } else {
          out.push_back(*part);
        }
        after_match = part->match;
      }
      std::reverse(out.begin(), out.end());
      break;
  }
  return out;
}

namespace {

void push_part(std::vector<Part>& parts, size_t start, size_t end, bool match) {
  if (start < end) {
    parts.push_back({start, end, match});
  }
}

}  // namespace

Status parts_of(const Regex& regex, std::string_view text, bool invert, std::vector<Part>& parts) {
  parts.clear();
  size_t done = 0;
  Regex::Finder finder(regex, text);
  while (true) {
    PTERO_ASSIGN_OR_RETURN(const std::optional<Regex::Match> match, finder.next());
    if (!match) {
      break;
    }
    push_part(parts, done, match->start, invert);
    push_part(parts, match->start, match->end, !invert);
    done = match->end;
  }
  push_part(parts, done, text.size(), invert);
  return ok_status();
}

void parts_of(const Predicate& predicate, std::string_view text, std::vector<Part>& parts) {
  parts.clear();
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (predicate(step.code_point)) {
      push_part(parts, done, at, false);
      push_part(parts, at, at + step.size, true);
      done = at + step.size;
    }
    at += step.size;
  }
  push_part(parts, done, text.size(), false);
}

}  // namespace ptero::text
