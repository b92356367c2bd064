// SPDX-License-Identifier: BSD-3-Clause
// The vocabulary, and the models that turn a piece of text into tokens of it. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tables.h"
#include "text/tokenizer.h"

namespace ptero::text {

inline constexpr TokenId kNoToken = ~TokenId{0};  // more than any vocabulary has

class Vocabulary {
 public:
  // Ids may leave holes, but not larger ones than a vocabulary of this size explains.
  // A token that is there already takes the new id, as a JSON object's member does.
  Status add(std::string_view token, TokenId id);
  // To be called with the number of tokens that a file announces.
  void reserve(size_t count);

  size_t size() const { return tokens_.size(); }  // largest id plus one
  std::optional<TokenId> id(std::string_view token) const;
  // Empty for a hole.
  const std::string& token(TokenId id) const { return tokens_[id]; }
  // "<0x0A>" and so on, for bytes without another token.
  std::optional<TokenId> byte(uint8_t byte) const { return id(byte_name(byte)); }
  static std::string byte_name(uint8_t byte);

 private:
  struct Slot {
    TokenId id = kNoToken;
    uint32_t tag = 0;  // of the hash
  };
  // Where the token is, or the free slot where it belongs.
  size_t slot(std::string_view token, uint64_t hash) const;
  void grow(size_t slots);

  std::vector<std::string> tokens_;
  std::vector<Slot> slots_;
  size_t count_ = 0;
};
using VocabularyPtr = std::shared_ptr<const Vocabulary>;

class Model {
 public:
  virtual ~Model() = default;
  // Appends the tokens of a piece: valid UTF-8, below 4 GiB.
  virtual Status encode(std::string_view piece, std::vector<TokenId>& ids) const = 0;
};
using ModelPtr = std::unique_ptr<const Model>;

struct BpeOptions {
  std::optional<TokenId> unknown;  // without one, unknown characters vanish
  bool fuse_unknown = false;       // one token for several in a row
  bool byte_fallback = false;
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  std::string continuing_prefix;
  std::string end_suffix;
  std::shared_ptr<const Trie> frozen;  // words that are symbols of their own and never merged
};

struct BpeMerge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId result = 0;
};
// Earlier merges come before later ones, equal ones from left to right.
ModelPtr make_bpe(VocabularyPtr vocabulary, const std::vector<BpeMerge>& merges,
                  BpeOptions options);

// Any two neighbours merge whose text together is a token, the lowest rank first. `ranks` has one
// for each token; kNeverMerged keeps text from becoming that token. Without prefix and suffix.
inline constexpr uint32_t kNeverMerged = ~uint32_t{0};
ModelPtr make_bpe_by_text(VocabularyPtr vocabulary, std::vector<uint32_t> ranks,
                          BpeOptions options);

struct UnigramOptions {
  std::optional<TokenId> unknown;
  bool byte_fallback = false;
  bool single_precision = false;  // sums of scores as in SentencePiece itself
};
// What a token counts for in the sum that the best split maximises; NaN for tokens that text never
// becomes.
using UnigramScores = std::vector<double>;
// Ids of scores are those of the vocabulary. `bonus` marks tokens that win over all others.
ModelPtr make_unigram(VocabularyPtr vocabulary, UnigramScores scores, std::vector<bool> bonus,
                      UnigramOptions options);

struct WordPieceOptions {
  TokenId unknown = 0;
  std::string continuing_prefix = "##";
  size_t max_characters = 100;
  bool whole_words = false;  // the model "WordLevel": a piece is a token or unknown
};
ModelPtr make_word_piece(VocabularyPtr vocabulary, WordPieceOptions options);

}  // namespace ptero::text
