// SPDX-License-Identifier: BSD-3-Clause
#include "llm/stop_text.h"

#include <algorithm>
#include <utility>

namespace ptero::llm {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::string StopText::push(std::string_view text) {
  if (stopped_) {
    return {};
  }
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    first = std::min(first, held_.find(stop));
  }
  if (first != std::string::npos) {
    stopped_ = true;
    std::string out = held_.substr(0, first);
    held_.clear();
    return out;
  }
  // The longest end of the text that begins a stop string.
  size_t kept = 0;
  for (const std::string& stop : stops_) {
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > kept; --size) {
      if (held_.compare(held_.size() - size, size, stop, 0, size) == 0) {
        kept = size;
      }
    }
  }
  std::string out = held_.substr(0, held_.size() - kept);
  held_.erase(0, out.size());
  return out;
}

std::string StopText::finish() {
  return std::exchange(held_, {});
}

}  // namespace ptero::llm
