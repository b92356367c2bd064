// SPDX-License-Identifier: BSD-3-Clause
#include "text/tokenizer.h"

#include <algorithm>
#include <array>

#include "text/parts.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxText = size_t{64} << 20;
constexpr size_t kMaxCachedWord = 64;

// Tokens that end a sequence or a turn in the models that people use.
constexpr std::array<std::string_view, 18> kEndNames = {
    "</s>",
    "<eos>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<EOT>",
    "<|END_OF_TURN_TOKEN|>",
    "<turn|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

// One call of encode(): a word that comes again is copied from where it was the first time.
class Encoder {
 public:
  Encoder(const detail::TokenizerParts& parts, const EncodeOptions& options)
      : parts_(parts), options_(options) {}

  Result<std::vector<TokenId>> run(std::string_view text) {
    if (options_.add_special) {
      ids_ = parts_.prefix;
    }
    for (const auto& part : parts_.added.split(text, false, options_.parse_special)) {
      if (part.id) {
        ids_.push_back(*part.id);
      } else {
        PTERO_RETURN_IF_ERROR(normalize(part.text, part.text.data() == text.data()));
      }
    }
    if (options_.add_special) {
      ids_.insert(ids_.end(), parts_.suffix.begin(), parts_.suffix.end());
    }
    return std::move(ids_);
  }

 private:
  Status normalize(std::string_view text, bool at_start) {
    std::string normal(text);
    const size_t limit = normalized_limit(text.size());
    if (parts_.normalizer != nullptr) {
      PTERO_RETURN_IF_ERROR(parts_.normalizer->apply(normal, limit));
    }
    for (const auto& part : parts_.added.split(normal, true, options_.parse_special)) {
      if (part.id) {
        ids_.push_back(*part.id);
      } else {
        std::vector<Piece> pieces;
        pieces.push_back({std::string(part.text), at_start && part.text.data() == normal.data()});
        if (parts_.pre_tokenizer != nullptr) {
          PTERO_RETURN_IF_ERROR(parts_.pre_tokenizer->apply(pieces, limit * 4));
        }
        for (const Piece& piece : pieces) {
          PTERO_RETURN_IF_ERROR(encode_piece(piece.text));
        }
      }
    }
    return ok_status();
  }

  Status encode_piece(const std::string& piece) {
    const size_t start = ids_.size();
    if (piece.size() > kMaxCachedWord) {
      return parts_.model->encode(piece, ids_);
    }
    const auto known = words_.find(piece);
    if (known != words_.end()) {
      for (size_t i = 0; i < known->second.count; ++i) {
        ids_.push_back(ids_[known->second.start + i]);
      }
      return ok_status();
    }
    PTERO_RETURN_IF_ERROR(parts_.model->encode(piece, ids_));
    words_.emplace(piece, Word{start, ids_.size() - start});
    return ok_status();
  }

  struct Word {
    size_t start = 0;  // in ids_
    size_t count = 0;
  };
  const detail::TokenizerParts& parts_;
  const EncodeOptions& options_;
  std::vector<TokenId> ids_;
  StringMap<Word> words_;
};

}  // namespace

namespace detail {

void TokenizerParts::find_ends() {
  for (const AddedToken& token : added.tokens()) {
    if (token.special &&
        std::find(kEndNames.begin(), kEndNames.end(), token.content) != kEndNames.end()) {
      ends.push_back(token.id);
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

const std::string* TokenizerParts::token(TokenId id) const {
  if (const AddedToken* token = added.find(id)) {
    return &token->content;
  }
  if (id >= vocabulary->size() || vocabulary->token(id).empty()) {
    return nullptr;
  }
  return &vocabulary->token(id);
}

std::optional<TokenId> TokenizerParts::id(std::string_view token) const {
  if (const AddedToken* found = added.find(token)) {
    return found->id;
  }
  return vocabulary->id(token);
}

}  // namespace detail

Tokenizer::Tokenizer(std::shared_ptr<const detail::TokenizerParts> parts)
    : parts_(std::move(parts)) {}

Result<Tokenizer> Tokenizer::from_bytes(std::string_view bytes) {
  const size_t start = bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start != std::string_view::npos && bytes[start] == '{') {
    return from_json(bytes);
  }
  return detail::looks_like_tiktoken(bytes) ? from_tiktoken(bytes) : from_sentencepiece(bytes);
}

Result<Tokenizer> Tokenizer::from_json(std::string_view bytes) {
  PTERO_ASSIGN_OR_RETURN(auto parts, detail::read_tokenizer_json(bytes));
  return Tokenizer(std::move(parts));
}

Result<Tokenizer> Tokenizer::from_tiktoken(std::string_view bytes, const TiktokenOptions& options) {
  PTERO_ASSIGN_OR_RETURN(auto parts, detail::read_tiktoken(bytes, options));
  return Tokenizer(std::move(parts));
}

Result<Tokenizer> Tokenizer::from_sentencepiece(std::string_view bytes) {
  PTERO_ASSIGN_OR_RETURN(auto parts, detail::read_sentencepiece(bytes));
  return Tokenizer(std::move(parts));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text,
                                               const EncodeOptions& options) const {
  PTERO_REJECT_IF(text.size() > kMaxText, invalid_argument,
                  "Text ({} bytes) is longer than the limit ({}).", text.size(), kMaxText);
  std::string storage;
  return Encoder(*parts_, options).run(valid_utf8(text, storage));
}

std::string Tokenizer::decode(const std::vector<TokenId>& ids, const DecodeOptions& options) const {
  StreamDecoder decoder(*this, options);
  std::string text;
  for (const TokenId id : ids) {
    text += decoder.push(id);
  }
  return text += decoder.finish();
}

size_t Tokenizer::vocab_size() const {
  size_t size = parts_->vocabulary->size();
  for (const AddedToken& token : parts_->added.tokens()) {
    size = std::max<size_t>(size, size_t{token.id} + 1);
  }
  return size;
}

std::optional<std::string> Tokenizer::token(TokenId id) const {
  const std::string* token = parts_->token(id);
  return token == nullptr ? std::nullopt : std::optional(*token);
}

std::optional<TokenId> Tokenizer::id(std::string_view token) const {
  return parts_->id(token);
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* token = parts_->added.find(id);
  return token != nullptr && token->special;
}

std::optional<TokenId> Tokenizer::begin_id() const {
  return parts_->begin;
}

const std::vector<TokenId>& Tokenizer::end_ids() const {
  return parts_->ends;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, const DecodeOptions& options)
    : tokenizer_(tokenizer),
      state_(std::make_unique<detail::DecodeState>(tokenizer.parts_->decoder)),
      options_(options) {}

StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::push(TokenId id) {
  std::string out;
  const detail::TokenizerParts& parts = *tokenizer_.parts_;
  if (options_.skip_special && tokenizer_.is_special(id)) {
    return out;
  }
  if (parts.unknown_text && parts.unknown_text->first == id) {
    state_->push(parts.unknown_text->second, out);
  } else if (const std::string* token = parts.token(id)) {
    state_->push(*token, out);
  }
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  state_->finish(out);
  return out;
}

}  // namespace ptero::text
