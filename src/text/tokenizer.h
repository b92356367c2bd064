// SPDX-License-Identifier: BSD-3-Clause
// Text to token ids and back, from the files that models come with: Hugging Face's tokenizer.json,
// tiktoken's rank files and SentencePiece's models. All become the same pipeline (normalise, split,
// merge, decode), so ids are those of the reference libraries whichever file they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptero::text {

using TokenId = uint32_t;

struct EncodeOptions {
  // Adds what the file says every sequence has around it, such as a begin token. Chat templates
  // write those tokens themselves: pass false for their output.
  bool add_special = true;
  // Text that spells a special token becomes that token. Pass false for text of strangers, who
  // could otherwise end a turn by writing "<|im_end|>".
  bool parse_special = true;
};

struct DecodeOptions {
  bool skip_special = false;  // special tokens become no text
};

// What a tiktoken file does not say about itself. An empty pattern and no special tokens mean: the
// model that has as many ranks (Llama 3, Qwen, the OpenAI encodings); another count is refused.
struct TiktokenOptions {
  std::string pattern;  // splits text before merging
  std::vector<std::pair<std::string, TokenId>> special_tokens;
  std::string begin_token;              // added before every sequence; empty for none
  std::vector<std::string> end_tokens;  // see Tokenizer::end_ids()
};

namespace detail {
struct TokenizerParts;
class DecodeState;
}  // namespace detail

// Immutable and cheap to copy; all methods may be called from several threads at once.
class Tokenizer {
 public:
  // Tells the format from the bytes. A tiktoken file is taken with default options.
  // Code invalid_program when the file is wrong, unsupported when it asks for what we lack.
  static Result<Tokenizer> from_bytes(std::string_view bytes);
  static Result<Tokenizer> from_json(std::string_view bytes);  // tokenizer.json, also tekken.json
  static Result<Tokenizer> from_tiktoken(std::string_view bytes, const TiktokenOptions& = {});
  static Result<Tokenizer> from_sentencepiece(std::string_view bytes);  // tokenizer.model

  // Bytes that are not UTF-8 become U+FFFD first. Code invalid_argument when the text cannot be
  // split in bounded time (only with a pattern that was made to take forever).
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& = {}) const;

  // Always UTF-8: bytes of tokens that form no character become U+FFFD. Ids without a token
  // (models round their vocabulary up) become no text.
  std::string decode(const std::vector<TokenId>& ids, const DecodeOptions& = {}) const;

  // One more than the largest id.
  size_t vocab_size() const;
  // As the file spells it (byte-level tokens with "\u0120" for a space); empty for unknown ids.
  std::optional<std::string> token(TokenId id) const;
  std::optional<TokenId> id(std::string_view token) const;
  bool is_special(TokenId id) const;

  // The token that begins every sequence, if the file says that there is one.
  std::optional<TokenId> begin_id() const;
  // Tokens that end a sequence or a turn, as far as the file says or their names tell
  // ("</s>", "<|im_end|>", "<|eot_id|>", ...), in rising order. Generation should stop at any of
  // them and at those that the model's own metadata names.
  const std::vector<TokenId>& end_ids() const;

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::shared_ptr<const detail::TokenizerParts> parts);

  std::shared_ptr<const detail::TokenizerParts> parts_;
};

// Decodes tokens as they are generated. What push() and finish() return, put together, equals
// Tokenizer::decode() of all ids, and every piece is whole UTF-8 characters. For one thread.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, const DecodeOptions& = {});
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

  // The text that is certain after this token; often empty (half a character).
  std::string push(TokenId id);
  // The text that was held back. The decoder then starts anew.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  std::unique_ptr<detail::DecodeState> state_;
  DecodeOptions options_;
};

}  // namespace ptero::text
