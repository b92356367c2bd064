// SPDX-License-Identifier: BSD-3-Clause
// Tokens that are found in text before the model sees it. Internal to src/text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/normalizer.h"
#include "text/tables.h"
#include "text/tokenizer.h"

namespace ptero::text {

struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;
  bool single_word = false;  // not within a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;
  bool normalized = false;  // is found in normalised text, in its normalised form
};

class AddedTokens {
 public:
  struct Part {
    std::string_view text;
    std::optional<TokenId> id;
  };

  // `normalizer` may be null.
  Status add(AddedToken token, const Normalizer* normalizer);

  // Cuts text at the tokens that are (or are not) to be found in normalised text. Special ones
  // only if `special`.
  std::vector<Part> split(std::string_view text, bool normalized, bool special) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  // Null when there is none.
  const AddedToken* find(TokenId id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  std::vector<AddedToken> tokens_;
  KeyMap by_id_;
  StringMap<size_t> by_content_;
  // Indices into tokens_: [normalized][special ones too].
  Trie tries_[2][2];
};

}  // namespace ptero::text
