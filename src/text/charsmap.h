// SPDX-License-Identifier: BSD-3-Clause
// SentencePiece's compiled table of replacements: a double-array trie of what is replaced, then the
// replacements. Internal to src/text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ptero::text {

class Charsmap {
 public:
  struct Hit {
    size_t size = 0;  // bytes of text that are replaced
    std::string_view replacement;
  };

  // Copies `bytes`; empty ones make a table without replacements.
  static Result<Charsmap> read(std::string_view bytes);
  bool empty() const { return units_.empty(); }

  std::optional<Hit> longest_prefix(std::string_view text) const { return search(text, false); }
  std::optional<Hit> shortest_prefix(std::string_view text) const { return search(text, true); }

 private:
  std::optional<Hit> search(std::string_view text, bool first) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace ptero::text
