// SPDX-License-Identifier: BSD-3-Clause
// How text is cut into the pieces that a model turns into tokens one by one. Internal to src/text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/json.h"

namespace ptero::text {

struct Piece {
  std::string text;       // valid UTF-8, not empty
  bool at_start = false;  // of the whole input
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts each piece further. `limit` bounds the bytes of all pieces together.
  virtual Status apply(std::vector<Piece>& pieces, size_t limit) const = 0;
};
using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

// The member "pre_tokenizer" of a tokenizer.json; null makes null.
Result<PreTokenizerPtr> make_pre_tokenizer(const JsonValue& json);

// tiktoken: the matches of `pattern`, and nothing between them, with their bytes spelled out.
Result<PreTokenizerPtr> make_tiktoken_splitter(std::string_view pattern);

}  // namespace ptero::text
