// SPDX-License-Identifier: BSD-3-Clause
// Holds text back while it may become a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptero::llm {

class StopText {
 public:
  explicit StopText(std::vector<std::string> stops);

  // Takes more text; returns what is certain to belong to the answer.
  std::string push(std::string_view text);
  // What was held back, when nothing follows.
  std::string finish();
  // A stop string came: nothing more comes out.
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;  // none is empty
  std::string held_;
  bool stopped_ = false;
};

}  // namespace ptero::llm
