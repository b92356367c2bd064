// SPDX-License-Identifier: BSD-3-Clause
// What a Tokenizer is made of, whichever file it comes from. Internal to src/text.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/decoder.h"
#include "text/model.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace ptero::text::detail {

struct TokenizerParts {
  VocabularyPtr vocabulary;
  AddedTokens added;              // not all of them are in the vocabulary
  NormalizerPtr normalizer;       // may be null
  PreTokenizerPtr pre_tokenizer;  // may be null
  ModelPtr model;
  std::vector<TokenId> prefix;  // what add_special adds
  std::vector<TokenId> suffix;
  std::vector<DecodeStep> decoder;
  // A token that decodes to a text other than its own.
  std::optional<std::pair<TokenId, std::string>> unknown_text;
  std::optional<TokenId> begin;
  std::vector<TokenId> ends;

  // Takes from the names of special tokens which of them end something.
  void find_ends();
  // Null for unknown ids.
  const std::string* token(TokenId id) const;
  std::optional<TokenId> id(std::string_view token) const;
};

using PartsPtr = std::shared_ptr<const TokenizerParts>;
Result<PartsPtr> read_tokenizer_json(std::string_view bytes);
Result<PartsPtr> read_tiktoken(std::string_view bytes, const TiktokenOptions& options);
Result<PartsPtr> read_tekken(const JsonValue& json);
Result<PartsPtr> read_sentencepiece(std::string_view bytes);
bool looks_like_tiktoken(std::string_view bytes);

}  // namespace ptero::text::detail
