// SPDX-License-Identifier: BSD-3-Clause
// tokenizer.json, the format of the tokenizers library.
#include <cmath>

#include "text/json.h"
#include "text/parts.h"

namespace ptero::text::detail {
namespace {

constexpr std::string_view kModel = "the tokenizer's model";
constexpr std::string_view kProcessor = "the tokenizer's post_processor";
constexpr std::string_view kAdded = "the tokenizer's added_tokens";

// A member, or null when it is missing.
const JsonValue& member(const JsonValue& object, std::string_view name) {
  static const JsonValue kNull;
  const JsonValue* found = object.find(name);
  return found == nullptr ? kNull : *found;
}

Result<TokenId> token_id(const JsonValue& value, std::string_view where) {
  const int64_t* id = value.integer();
  PTERO_REJECT_IF(id == nullptr || *id < 0 || *id > int64_t{0x7FFFFFFF}, invalid_program,
                  "An id in {} is {} instead of a token's number.", where,
                  id == nullptr ? std::string(value.kind()) : fmt::format("{}", *id));
  return static_cast<TokenId>(*id);
}

Result<std::shared_ptr<Vocabulary>> read_vocabulary(const JsonValue& model) {
  const JsonValue& vocab = member(model, "vocab");
  PTERO_REJECT_IF(vocab.object() == nullptr, invalid_program,
                  "Member (vocab) of {} is {} instead of an object.", kModel, vocab.kind());
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->reserve(vocab.object()->size());
  for (const auto& [token, value] : *vocab.object()) {
    PTERO_ASSIGN_OR_RETURN(const TokenId id, token_id(value, "the tokenizer's vocab"));
    PTERO_RETURN_IF_ERROR(vocabulary->add(token, id));
  }
  return vocabulary;
}

// The two tokens of a merge: ["a", "b"] or "a b".
Result<std::pair<std::string_view, std::string_view>> merge_pair(const JsonValue& merge) {
  if (const JsonArray* pair = merge.array()) {
    if (pair->size() == 2 && (*pair)[0].string() != nullptr && (*pair)[1].string() != nullptr) {
      return std::pair<std::string_view, std::string_view>(*(*pair)[0].string(),
                                                           *(*pair)[1].string());
    }
  } else if (const std::string* text = merge.string()) {
    const size_t space = text->find(' ');
    if (space != std::string::npos && text->find(' ', space + 1) == std::string::npos) {
      return std::pair(std::string_view(*text).substr(0, space),
                       std::string_view(*text).substr(space + 1));
    }
  }
  return make_error(ErrorCode::invalid_program, "A merge in {} is not two tokens.", kModel);
}

Result<std::vector<BpeMerge>> read_merges(const JsonValue& model, const Vocabulary& vocabulary,
                                          const std::string& prefix) {
  PTERO_ASSIGN_OR_RETURN(const JsonArray* list, need_array(model, "merges", kModel));
  std::vector<BpeMerge> merges;
  merges.reserve(list->size());
  std::string whole;
  for (const JsonValue& item : *list) {
    PTERO_ASSIGN_OR_RETURN(const auto pair, merge_pair(item));
    const auto [left, right] = pair;
    whole = left;
    whole += right.starts_with(prefix) ? right.substr(prefix.size()) : right;
    const auto a = vocabulary.id(left), b = vocabulary.id(right), c = vocabulary.id(whole);
    PTERO_REJECT_IF(!a || !b || !c, invalid_program,
                    "Merge {} ({} and {}) of {} names a token that is not in the vocabulary.",
                    merges.size(), left, right, kModel);
    merges.push_back({*a, *b, *c});
  }
  return merges;
}

Result<std::optional<TokenId>> unknown_token(const JsonValue& model, const Vocabulary& vocabulary) {
  PTERO_ASSIGN_OR_RETURN(const std::string name, get_string(model, "unk_token", "", kModel));
  if (name.empty()) {
    return std::optional<TokenId>();
  }
  const auto id = vocabulary.id(name);
  PTERO_REJECT_IF(!id, invalid_program, "Unknown token ({}) of {} is not in the vocabulary.", name,
                  kModel);
  return id;
}

Status read_bpe(const JsonValue& model, TokenizerParts& parts) {
  PTERO_ASSIGN_OR_RETURN(const auto vocabulary, read_vocabulary(model));
  BpeOptions options;
  PTERO_ASSIGN_OR_RETURN(options.unknown, unknown_token(model, *vocabulary));
  PTERO_ASSIGN_OR_RETURN(options.fuse_unknown, get_bool(model, "fuse_unk", false, kModel));
  PTERO_ASSIGN_OR_RETURN(options.byte_fallback, get_bool(model, "byte_fallback", false, kModel));
  PTERO_ASSIGN_OR_RETURN(options.ignore_merges, get_bool(model, "ignore_merges", false, kModel));
  PTERO_ASSIGN_OR_RETURN(options.continuing_prefix,
                         get_string(model, "continuing_subword_prefix", "", kModel));
  PTERO_ASSIGN_OR_RETURN(options.end_suffix, get_string(model, "end_of_word_suffix", "", kModel));
  PTERO_ASSIGN_OR_RETURN(const auto merges,
                         read_merges(model, *vocabulary, options.continuing_prefix));
  parts.vocabulary = vocabulary;
  parts.model = make_bpe(vocabulary, merges, std::move(options));
  return ok_status();
}

Status read_unigram(const JsonValue& model, TokenizerParts& parts) {
  PTERO_ASSIGN_OR_RETURN(const JsonArray* list, need_array(model, "vocab", kModel));
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->reserve(list->size());
  UnigramScores scores;
  for (const JsonValue& item : *list) {
    const JsonArray* pair = item.array();
    double score = 0;
    PTERO_REJECT_IF(pair == nullptr || pair->size() != 2 || (*pair)[0].string() == nullptr ||
                        !(*pair)[1].number(score) || !std::isfinite(score),
                    invalid_program, "Token {} of {} is not a text and a score.", scores.size(),
                    kModel);
    PTERO_RETURN_IF_ERROR(
        vocabulary->add(*(*pair)[0].string(), static_cast<TokenId>(scores.size())));
    scores.push_back(score);
  }
  UnigramOptions options;
  PTERO_ASSIGN_OR_RETURN(const int64_t unknown, get_int(model, "unk_id", -1, kModel));
  if (unknown >= 0) {
    PTERO_REJECT_IF(static_cast<uint64_t>(unknown) >= scores.size(), invalid_program,
                    "Unknown token ({}) of {} is not in the vocabulary ({} tokens).", unknown,
                    kModel, scores.size());
    options.unknown = static_cast<TokenId>(unknown);
  }
  PTERO_ASSIGN_OR_RETURN(options.byte_fallback, get_bool(model, "byte_fallback", false, kModel));
  parts.vocabulary = vocabulary;
  parts.model = make_unigram(vocabulary, std::move(scores), {}, options);
  return ok_status();
}

Status read_words(const JsonValue& model, bool whole_words, TokenizerParts& parts) {
  PTERO_ASSIGN_OR_RETURN(const auto vocabulary, read_vocabulary(model));
  PTERO_ASSIGN_OR_RETURN(const auto unknown, unknown_token(model, *vocabulary));
  PTERO_REJECT_IF(!unknown, invalid_program, "Member (unk_token) of {} is missing.", kModel);
  WordPieceOptions options{.unknown = *unknown, .whole_words = whole_words};
  PTERO_ASSIGN_OR_RETURN(options.continuing_prefix,
                         get_string(model, "continuing_subword_prefix", "##", kModel));
  PTERO_ASSIGN_OR_RETURN(const int64_t most,
                         get_int(model, "max_input_chars_per_word", 100, kModel));
  PTERO_REJECT_IF(most < 0 || most > 10000, invalid_program,
                  "Member (max_input_chars_per_word) of {} is {}, beyond the limit (10000).",
                  kModel, most);
  options.max_characters = static_cast<size_t>(most);
  parts.vocabulary = vocabulary;
  parts.model = make_word_piece(vocabulary, std::move(options));
  return ok_status();
}

Status read_model(const JsonValue& model, TokenizerParts& parts) {
  PTERO_REJECT_IF(model.object() == nullptr, invalid_program,
                  "Member (model) of the tokenizer file is {} instead of an object.", model.kind());
  const std::string_view guess = model.find("merges") != nullptr             ? "BPE"
                                 : member(model, "vocab").array() != nullptr ? "Unigram"
                                                                             : "WordPiece";
  PTERO_ASSIGN_OR_RETURN(const std::string type, get_string(model, "type", guess, kModel));
  if (type == "BPE") {
    return read_bpe(model, parts);
  }
  if (type == "Unigram") {
    return read_unigram(model, parts);
  }
  if (type == "WordPiece") {
    return read_words(model, false, parts);
  }
  if (type == "WordLevel") {
    return read_words(model, true, parts);
  }
  return make_error(ErrorCode::unsupported, "Model ({}) of the tokenizer is not supported.", type);
}

Status read_added(const JsonValue& list, TokenizerParts& parts) {
  if (list.is_null()) {
    return ok_status();
  }
  PTERO_REJECT_IF(list.array() == nullptr, invalid_program,
                  "Member (added_tokens) of the tokenizer file is {} instead of an array.",
                  list.kind());
  for (const JsonValue& item : *list.array()) {
    AddedToken token;
    PTERO_ASSIGN_OR_RETURN(token.content, need_string(item, "content", kAdded));
    PTERO_ASSIGN_OR_RETURN(token.id, token_id(member(item, "id"), kAdded));
    PTERO_ASSIGN_OR_RETURN(token.special, get_bool(item, "special", false, kAdded));
    PTERO_ASSIGN_OR_RETURN(token.single_word, get_bool(item, "single_word", false, kAdded));
    PTERO_ASSIGN_OR_RETURN(token.lstrip, get_bool(item, "lstrip", false, kAdded));
    PTERO_ASSIGN_OR_RETURN(token.rstrip, get_bool(item, "rstrip", false, kAdded));
    PTERO_ASSIGN_OR_RETURN(token.normalized, get_bool(item, "normalized", !token.special, kAdded));
    if (token.content.empty()) {
      continue;  // matches nothing
    }
    // The model's word counts where the two differ, as in the library.
    token.id = parts.vocabulary->id(token.content).value_or(token.id);
    PTERO_RETURN_IF_ERROR(parts.added.add(std::move(token), parts.normalizer.get()));
  }
  return ok_status();
}

// The ids that TemplateProcessing has for a special token.
Status template_ids(const JsonValue& processor, const JsonValue& special,
                    std::vector<TokenId>& ids) {
  PTERO_ASSIGN_OR_RETURN(const std::string name, need_string(special, "id", kProcessor));
  const JsonValue& entry = member(member(processor, "special_tokens"), name);
  PTERO_ASSIGN_OR_RETURN(const JsonArray* list, need_array(entry, "ids", kProcessor));
  for (const JsonValue& item : *list) {
    PTERO_ASSIGN_OR_RETURN(const TokenId id, token_id(item, kProcessor));
    PTERO_REJECT_IF(ids.size() >= 1024, invalid_program,
                    "The tokenizer's post_processor adds more tokens than the limit (1024).");
    ids.push_back(id);
  }
  return ok_status();
}

Result<TokenId> pair_id(const JsonValue& processor, std::string_view name) {
  const JsonArray* pair = member(processor, name).array();
  PTERO_REJECT_IF(pair == nullptr || pair->size() != 2, invalid_program,
                  "Member ({}) of {} is not a text and an id.", name, kProcessor);
  return token_id((*pair)[1], kProcessor);
}

Status read_processor(const JsonValue& processor, TokenizerParts& parts) {
  if (processor.is_null()) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const std::string type, need_string(processor, "type", kProcessor));
  if (type == "ByteLevel") {
    return ok_status();  // about offsets only
  }
  if (type == "Sequence") {
    PTERO_ASSIGN_OR_RETURN(const JsonArray* list, need_array(processor, "processors", kProcessor));
    for (const JsonValue& item : *list) {
      PTERO_RETURN_IF_ERROR(read_processor(item, parts));
    }
    return ok_status();
  }
  std::vector<TokenId> prefix, suffix;
  if (type == "TemplateProcessing") {
    PTERO_ASSIGN_OR_RETURN(const JsonArray* single, need_array(processor, "single", kProcessor));
    bool after_text = false;
    for (const JsonValue& item : *single) {
      if (const JsonValue* special = item.find("SpecialToken")) {
        PTERO_RETURN_IF_ERROR(template_ids(processor, *special, after_text ? suffix : prefix));
      } else {
        after_text = true;
      }
    }
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    PTERO_ASSIGN_OR_RETURN(const TokenId first, pair_id(processor, "cls"));
    PTERO_ASSIGN_OR_RETURN(const TokenId last, pair_id(processor, "sep"));
    prefix = {first};
    suffix = {last};
  } else {
    return make_error(ErrorCode::unsupported,
                      "Post-processor ({}) of the tokenizer is not supported.", type);
  }
  parts.prefix.insert(parts.prefix.begin(), prefix.begin(), prefix.end());
  parts.suffix.insert(parts.suffix.end(), suffix.begin(), suffix.end());
  return ok_status();
}

}  // namespace

Result<PartsPtr> read_tokenizer_json(std::string_view bytes) {
  PTERO_ASSIGN_OR_RETURN(const JsonValue json, parse_json(bytes, "Tokenizer file"));
  PTERO_REJECT_IF(json.object() == nullptr, invalid_program,
                  "Tokenizer file is {} instead of an object.", json.kind());
  if (json.find("model") == nullptr && member(json, "vocab").array() != nullptr) {
    return read_tekken(json);
  }
  auto parts = std::make_shared<TokenizerParts>();
  PTERO_RETURN_IF_ERROR(read_model(member(json, "model"), *parts));
  PTERO_ASSIGN_OR_RETURN(parts->normalizer, make_normalizer(member(json, "normalizer")));
  PTERO_ASSIGN_OR_RETURN(parts->pre_tokenizer, make_pre_tokenizer(member(json, "pre_tokenizer")));
  PTERO_RETURN_IF_ERROR(read_added(member(json, "added_tokens"), *parts));
  PTERO_RETURN_IF_ERROR(read_processor(member(json, "post_processor"), *parts));
  PTERO_ASSIGN_OR_RETURN(parts->decoder, make_decoder(member(json, "decoder")));
  if (!parts->prefix.empty()) {
    parts->begin = parts->prefix.front();
  }
  parts->find_ends();
  return PartsPtr(std::move(parts));
}

}  // namespace ptero::text::detail
