// SPDX-License-Identifier: BSD-3-Clause
// Rank files of tiktoken and Mistral's tekken.json, which holds the same in JSON.
#include <charconv>
#include <numeric>

#include "text/base64.h"
#include "text/byte_level.h"
#include "text/parts.h"
#include "text/tiktoken_presets.h"
#include "text/utf8.h"

namespace ptero::text::detail {
namespace {

constexpr size_t kMaxToken = 4096;  // bytes

// Tokens in the order of the file, their ids being ranks from `first` on.
class Ranks {
 public:
  explicit Ranks(TokenId first) : first_(first), vocabulary_(std::make_shared<Vocabulary>()) {}

  Status add(std::string_view bytes, uint64_t rank) {
    PTERO_REJECT_IF(bytes.empty() || bytes.size() > kMaxToken, invalid_program,
                    "Token of rank {} has {} bytes; 1 to {} are possible.", rank, bytes.size(),
                    kMaxToken);
    PTERO_REJECT_IF(rank > 0x7FFFFFFF - first_, invalid_program,
                    "Rank ({}) of a token exceeds the limit ({}).", rank, 0x7FFFFFFF - first_);
    const TokenId id = first_ + static_cast<TokenId>(rank);
    const std::string spelled = spell_bytes(bytes);
    PTERO_REJECT_IF(vocabulary_->id(spelled).has_value(), invalid_program,
                    "Token of rank {} is in the file twice.", rank);
    PTERO_REJECT_IF(id < vocabulary_->size() && !vocabulary_->token(id).empty(), invalid_program,
                    "Rank ({}) is in the file twice.", rank);
    ++count_;
    return vocabulary_->add(spelled, id);
  }

  size_t count() const { return count_; }

  Result<std::shared_ptr<TokenizerParts>> finish(std::string_view pattern) && {
    for (unsigned byte = 0; byte < 256; ++byte) {
      PTERO_REJECT_IF(!vocabulary_->id(byte_spelling(static_cast<uint8_t>(byte))), invalid_program,
                      "The tokenizer file has no token for byte {}.", byte);
    }
    std::vector<uint32_t> ranks(vocabulary_->size());
    std::iota(ranks.begin(), ranks.end(), uint32_t{0});
    auto parts = std::make_shared<TokenizerParts>();
    PTERO_ASSIGN_OR_RETURN(parts->pre_tokenizer, make_tiktoken_splitter(pattern));
    parts->model = make_bpe_by_text(vocabulary_, std::move(ranks), {.ignore_merges = true});
    parts->vocabulary = std::move(vocabulary_);
    parts->decoder.push_back({.kind = DecodeStep::Kind::byte_level});
    return parts;
  }

 private:
  TokenId first_;
  std::shared_ptr<Vocabulary> vocabulary_;
  size_t count_ = 0;
};

// One line: base64, a space, a rank.
bool split_line(std::string_view line, std::string_view& token, uint64_t& rank) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    return false;
  }
  token = line.substr(0, space);
  const std::string_view number = line.substr(space + 1);
  const char* end = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), end, rank);
  return !number.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

std::string_view take_line(std::string_view& bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(std::min(end + 1, bytes.size()));
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

Status add_special(TokenizerParts& parts, const std::string& content, TokenId id) {
  return parts.added.add({.content = content, .id = id, .special = true}, nullptr);
}

Status set_begin(TokenizerParts& parts, std::string_view token) {
  if (token.empty()) {
    return ok_status();
  }
  parts.begin = parts.id(token);
  PTERO_REJECT_IF(!parts.begin, invalid_argument,
                  "Begin token ({}) is not among the special tokens.", token);
  parts.prefix = {*parts.begin};
  return ok_status();
}

}  // namespace

bool looks_like_tiktoken(std::string_view bytes) {
  std::string_view token;
  uint64_t rank = 0;
  const std::string_view line = take_line(bytes);
  return line.size() < 4096 && split_line(line, token, rank) && decode_base64(token).ok();
}

Result<PartsPtr> read_tiktoken(std::string_view bytes, const TiktokenOptions& options) {
  Ranks ranks(0);
  size_t number = 0;
  while (!bytes.empty()) {
    ++number;
    const std::string_view line = take_line(bytes);
    if (line.empty()) {
      continue;
    }
    std::string_view coded;
    uint64_t rank = 0;
    PTERO_REJECT_IF(!split_line(line, coded, rank), invalid_program,
                    "Line {} of the tokenizer file is not a token in base64 and its rank.", number);
    PTERO_ASSIGN_OR_RETURN(const std::string token, decode_base64(coded), "while reading line {}",
                           number);
    PTERO_RETURN_IF_ERROR(ranks.add(token, rank), "while reading line {}", number);
  }
  const TiktokenOptions* chosen = &options;
  TiktokenPreset preset;
  if (options.pattern.empty() && options.special_tokens.empty()) {
    PTERO_ASSIGN_OR_RETURN(preset, tiktoken_preset(ranks.count()));
    chosen = &preset.options;
  }
  PTERO_ASSIGN_OR_RETURN(auto parts, std::move(ranks).finish(chosen->pattern));
  if (preset.nfc) {
    JsonObject nfc;
    nfc.emplace_back("type", JsonValue(std::string("NFC")));
    PTERO_ASSIGN_OR_RETURN(parts->normalizer, make_normalizer(JsonValue(std::move(nfc))));
  }
  for (const auto& [content, id] : chosen->special_tokens) {
    PTERO_RETURN_IF_ERROR(add_special(*parts, content, id));
  }
  PTERO_RETURN_IF_ERROR(set_begin(*parts, chosen->begin_token));
  for (const std::string& name : chosen->end_tokens) {
    const auto id = parts->id(name);
    PTERO_REJECT_IF(!id, invalid_argument, "End token ({}) is not among the tokens.", name);
    parts->ends.push_back(*id);
  }
  parts->find_ends();
  return PartsPtr(std::move(parts));
}

Result<PartsPtr> read_tekken(const JsonValue& json) {
  constexpr std::string_view kConfig = "the tokenizer's config";
  constexpr std::string_view kVocab = "the tokenizer's vocab";
  constexpr int64_t kMost = 8'000'000;
  const JsonValue* config = json.find("config");
  PTERO_REJECT_IF(config == nullptr || config->object() == nullptr, invalid_program,
                  "The tokenizer file has neither a model nor a config.");
  PTERO_ASSIGN_OR_RETURN(const std::string pattern, need_string(*config, "pattern", kConfig));
  PTERO_ASSIGN_OR_RETURN(const int64_t size, get_int(*config, "default_vocab_size", 0, kConfig));
  PTERO_ASSIGN_OR_RETURN(const int64_t special_count,
                         get_int(*config, "default_num_special_tokens", 0, kConfig));
  PTERO_REJECT_IF(special_count < 0 || size < special_count || size > kMost, invalid_program,
                  "The tokenizer's config has {} tokens, {} of them special; the limit is {}.",
                  size, special_count, kMost);
  PTERO_ASSIGN_OR_RETURN(const JsonArray* vocab, need_array(json, "vocab", kVocab));
  Ranks ranks(static_cast<TokenId>(special_count));
  for (const JsonValue& item : *vocab) {
    PTERO_ASSIGN_OR_RETURN(const int64_t rank, get_int(item, "rank", -1, kVocab));
    PTERO_REJECT_IF(rank < 0, invalid_program, "Rank ({}) in {} is negative.", rank, kVocab);
    if (rank >= size - special_count) {
      continue;  // the file holds more than the model has
    }
    PTERO_ASSIGN_OR_RETURN(const std::string coded, need_string(item, "token_bytes", kVocab));
    PTERO_ASSIGN_OR_RETURN(const std::string token, decode_base64(coded));
    PTERO_RETURN_IF_ERROR(ranks.add(token, static_cast<uint64_t>(rank)));
  }
  PTERO_ASSIGN_OR_RETURN(auto parts, std::move(ranks).finish(pattern));
  std::vector<std::string> names = tekken_special_tokens();
  if (const JsonValue* list = json.find("special_tokens"); list != nullptr && !list->is_null()) {
    PTERO_ASSIGN_OR_RETURN(const JsonArray* tokens, need_array(json, "special_tokens", kVocab));
    names.clear();
    for (const JsonValue& item : *tokens) {
      PTERO_ASSIGN_OR_RETURN(names.emplace_back(), need_string(item, "token_str", kVocab));
    }
  }
  for (size_t i = 0; i < static_cast<size_t>(special_count); ++i) {
    const std::string name = i < names.size() ? names[i] : fmt::format("<SPECIAL_{}>", i);
    PTERO_RETURN_IF_ERROR(add_special(*parts, name, static_cast<TokenId>(i)));
  }
  PTERO_RETURN_IF_ERROR(set_begin(*parts, parts->id("<s>") ? "<s>" : ""));
  parts->find_ends();
  return PartsPtr(std::move(parts));
}

}  // namespace ptero::text::detail
