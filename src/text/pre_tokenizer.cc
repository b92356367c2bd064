// SPDX-License-Identifier: BSD-3-Clause
#include "text/pre_tokenizer.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "text/byte_level.h"
#include "text/regex.h"
#include "text/split.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxPreTokenizers = 64;
constexpr std::string_view kPreTokenizer = "the tokenizer's pre_tokenizer";
// The split that byte-level vocabularies imply, as GPT-2 has it.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kWordsPattern = R"([\w\x{200C}\x{200D}]+|[^\w\x{200C}\x{200D}\s]+)";

Status check_size(const std::vector<Piece>& pieces, size_t limit) {
  size_t size = 0;
  for (const Piece& piece : pieces) {
    size += piece.text.size();
  }
  PTERO_REJECT_IF(size > limit, invalid_argument,
                  "Split text ({} bytes) is longer than the limit ({}) for its input.", size,
                  limit);
  return ok_status();
}

// Cuts every piece where `find` says.
template <typename Find>
Status cut(std::vector<Piece>& pieces, Behavior behavior, Find&& find) {
  std::vector<Piece> out;
  std::vector<Part> parts;
  for (const Piece& piece : pieces) {
    PTERO_RETURN_IF_ERROR(find(std::string_view(piece.text), parts));
    for (const Part& part : arrange(parts, behavior)) {
      out.push_back({piece.text.substr(part.start, part.end - part.start),
                     piece.at_start && part.start == 0});
    }
  }
  pieces = std::move(out);
  return ok_status();
}

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<PreTokenizerPtr> steps) : steps_(std::move(steps)) {}
  Status apply(std::vector<Piece>& pieces, size_t limit) const override {
    for (const PreTokenizerPtr& step : steps_) {
      PTERO_RETURN_IF_ERROR(step->apply(pieces, limit));
    }
    return ok_status();
  }

 private:
  std::vector<PreTokenizerPtr> steps_;
};

class Split : public PreTokenizer {
 public:
  Split(Regex regex, Behavior behavior, bool invert)
      : regex_(std::move(regex)), behavior_(behavior), invert_(invert) {}
  Status apply(std::vector<Piece>& pieces, size_t) const override {
    return cut(pieces, behavior_, [&](std::string_view text, std::vector<Part>& parts) {
      return parts_of(regex_, text, invert_, parts);
    });
  }

 private:
  Regex regex_;
  Behavior behavior_;
  bool invert_;
};

class SplitCharacters : public PreTokenizer {
 public:
  SplitCharacters(Predicate predicate, Behavior behavior)
      : predicate_(std::move(predicate)), behavior_(behavior) {}
  Status apply(std::vector<Piece>& pieces, size_t) const override {
    return cut(pieces, behavior_, [&](std::string_view text, std::vector<Part>& parts) {
      parts_of(predicate_, text, parts);
      return ok_status();
    });
  }

 private:
  Predicate predicate_;
  Behavior behavior_;
};

class SpellBytes : public PreTokenizer {
 public:
  Status apply(std::vector<Piece>& pieces, size_t limit) const override {
    for (Piece& piece : pieces) {
      piece.text = spell_bytes(piece.text);
    }
    return check_size(pieces, limit);
  }
};

class PrefixSpace : public PreTokenizer {
 public:
  Status apply(std::vector<Piece>& pieces, size_t limit) const override {
    for (Piece& piece : pieces) {
      if (!piece.text.starts_with(' ')) {
        piece.text.insert(0, " ");
      }
    }
    return check_size(pieces, limit);
  }
};

class Metaspace : public PreTokenizer {
 public:
  enum class Prepend { always, first, never };
  Metaspace(std::string replacement, uint32_t code_point, Prepend prepend, bool split)
      : replacement_(std::move(replacement)),
        code_point_(code_point),
        prepend_(prepend),
        split_(split) {}

  Status apply(std::vector<Piece>& pieces, size_t limit) const override {
    for (Piece& piece : pieces) {
      std::string text;
      for (const char c : piece.text) {
        if (c == ' ') {
          text += replacement_;
        } else {
          text += c;
        }
      }
      const bool wanted =
          prepend_ == Prepend::always || (prepend_ == Prepend::first && piece.at_start);
      if (wanted && !text.starts_with(replacement_)) {
        text.insert(0, replacement_);
      }
      piece.text = std::move(text);
    }
    PTERO_RETURN_IF_ERROR(check_size(pieces, limit));
    if (!split_) {
      return ok_status();
    }
    const Predicate is_replacement = [this](uint32_t c) { return c == code_point_; };
    return cut(pieces, Behavior::merged_with_next,
               [&](std::string_view text, std::vector<Part>& parts) {
                 parts_of(is_replacement, text, parts);
                 return ok_status();
               });
  }

 private:
  std::string replacement_;
  uint32_t code_point_;
  Prepend prepend_;
  bool split_;
};

Result<Behavior> behavior_of(const JsonValue& json, std::string_view fallback) {
  PTERO_ASSIGN_OR_RETURN(const std::string name,
                         get_string(json, "behavior", fallback, kPreTokenizer));
  if (name == "Removed") {
    return Behavior::removed;
  }
  if (name == "Isolated") {
    return Behavior::isolated;
  }
  if (name == "MergedWithPrevious") {
    return Behavior::merged_with_previous;
  }
  if (name == "MergedWithNext") {
    return Behavior::merged_with_next;
  }
  if (name == "Contiguous") {
    return Behavior::contiguous;
  }
  return make_error(ErrorCode::unsupported, "Behavior ({}) of {} is not supported.", name,
                    kPreTokenizer);
}

Result<uint32_t> one_character(std::string_view text, std::string_view name) {
  const Utf8Step step = text.empty() ? Utf8Step{} : utf8_step(text);
  PTERO_REJECT_IF(!step.valid || step.size != text.size(), invalid_program,
                  "Member ({}) of {} is ({}) instead of one character.", name, kPreTokenizer, text);
  return step.code_point;
}

template <typename Step, typename... Args>
PreTokenizerPtr step(Args&&... args) {
  return std::make_unique<Step>(std::forward<Args>(args)...);
}

PreTokenizerPtr sequence(PreTokenizerPtr first, PreTokenizerPtr second) {
  std::vector<PreTokenizerPtr> steps;
  steps.push_back(std::move(first));
  steps.push_back(std::move(second));
  return step<PreTokenizerSequence>(std::move(steps));
}

Result<PreTokenizerPtr> make_byte_level(const JsonValue& json) {
  PTERO_ASSIGN_OR_RETURN(const bool prefix,
                         get_bool(json, "add_prefix_space", true, kPreTokenizer));
  PTERO_ASSIGN_OR_RETURN(const bool split, get_bool(json, "use_regex", true, kPreTokenizer));
  PreTokenizerPtr made = step<SpellBytes>();
  if (split) {
    PTERO_ASSIGN_OR_RETURN(Regex regex, Regex::compile(kByteLevelPattern, RegexDialect::oniguruma));
    made = sequence(step<Split>(std::move(regex), Behavior::isolated, false), std::move(made));
  }
  return prefix ? sequence(step<PrefixSpace>(), std::move(made)) : std::move(made);
}

Result<PreTokenizerPtr> make_metaspace(const JsonValue& json) {
  PTERO_ASSIGN_OR_RETURN(const std::string replacement,
                         get_string(json, "replacement", "\xE2\x96\x81", kPreTokenizer));
  PTERO_ASSIGN_OR_RETURN(const uint32_t c, one_character(replacement, "replacement"));
  PTERO_ASSIGN_OR_RETURN(const bool prefix,
                         get_bool(json, "add_prefix_space", true, kPreTokenizer));
  PTERO_ASSIGN_OR_RETURN(const std::string scheme,
                         get_string(json, "prepend_scheme", "always", kPreTokenizer));
  PTERO_ASSIGN_OR_RETURN(const bool split, get_bool(json, "split", true, kPreTokenizer));
  PTERO_REJECT_IF(scheme != "always" && scheme != "first" && scheme != "never", unsupported,
                  "Member (prepend_scheme) of {} is ({}) instead of always, first or never.",
                  kPreTokenizer, scheme);
  const auto prepend = !prefix || scheme == "never" ? Metaspace::Prepend::never
                       : scheme == "first"          ? Metaspace::Prepend::first
                                                    : Metaspace::Prepend::always;
  return step<Metaspace>(replacement, c, prepend, split);
}

Result<PreTokenizerPtr> pre_tokenizer_from(const JsonValue& json, size_t& steps);

Result<PreTokenizerPtr> pre_tokenizers_from(const JsonValue& json, size_t& steps) {
  PTERO_ASSIGN_OR_RETURN(const JsonArray* list, need_array(json, "pretokenizers", kPreTokenizer));
  std::vector<PreTokenizerPtr> made;
  for (const JsonValue& item : *list) {
    PTERO_ASSIGN_OR_RETURN(PreTokenizerPtr one, pre_tokenizer_from(item, steps));
    made.push_back(std::move(one));
  }
  return step<PreTokenizerSequence>(std::move(made));
}

Result<PreTokenizerPtr> make_split(const JsonValue& json) {
  PTERO_ASSIGN_OR_RETURN(Regex regex, make_pattern(json, kPreTokenizer));
  PTERO_ASSIGN_OR_RETURN(const Behavior behavior, behavior_of(json, "Isolated"));
  PTERO_ASSIGN_OR_RETURN(const bool invert, get_bool(json, "invert", false, kPreTokenizer));
  return step<Split>(std::move(regex), behavior, invert);
}

Result<PreTokenizerPtr> pre_tokenizer_from(const JsonValue& json, size_t& steps) {
  PTERO_REJECT_IF(++steps > kMaxPreTokenizers, invalid_program,
                  "The tokenizer's pre_tokenizer has more steps than the limit ({}).",
                  kMaxPreTokenizers);
  PTERO_ASSIGN_OR_RETURN(const std::string type, need_string(json, "type", kPreTokenizer));
  if (type == "Sequence") {
    return pre_tokenizers_from(json, steps);
  }
  if (type == "ByteLevel") {
    return make_byte_level(json);
  }
  if (type == "Metaspace") {
    return make_metaspace(json);
  }
  if (type == "Split") {
    return make_split(json);
  }
  if (type == "Digits") {
    PTERO_ASSIGN_OR_RETURN(const bool single,
                           get_bool(json, "individual_digits", false, kPreTokenizer));
    return step<SplitCharacters>(is_numeric, single ? Behavior::isolated : Behavior::contiguous);
  }
  if (type == "Punctuation") {
    PTERO_ASSIGN_OR_RETURN(const Behavior behavior, behavior_of(json, "Isolated"));
    return step<SplitCharacters>(is_punctuation, behavior);
  }
  if (type == "WhitespaceSplit") {
    return step<SplitCharacters>(is_white_space, Behavior::removed);
  }
  if (type == "BertPreTokenizer") {
    return sequence(step<SplitCharacters>(is_white_space, Behavior::removed),
                    step<SplitCharacters>(is_punctuation, Behavior::isolated));
  }
  if (type == "CharDelimiterSplit") {
    PTERO_ASSIGN_OR_RETURN(const std::string delimiter,
                           need_string(json, "delimiter", kPreTokenizer));
    PTERO_ASSIGN_OR_RETURN(const uint32_t c, one_character(delimiter, "delimiter"));
    return step<SplitCharacters>([c](uint32_t other) { return c == other; }, Behavior::removed);
  }
  if (type == "Whitespace") {
    PTERO_ASSIGN_OR_RETURN(Regex regex, Regex::compile(kWordsPattern, RegexDialect::oniguruma));
    return step<Split>(std::move(regex), Behavior::removed, true);
  }
  return make_error(ErrorCode::unsupported, "Pre-tokenizer ({}) of the tokenizer is not supported.",
                    type);
}

}  // namespace

Result<PreTokenizerPtr> make_pre_tokenizer(const JsonValue& json) {
  if (json.is_null()) {
    return PreTokenizerPtr();
  }
  size_t steps = 0;
  return pre_tokenizer_from(json, steps);
}

Result<PreTokenizerPtr> make_tiktoken_splitter(std::string_view pattern) {
  PTERO_ASSIGN_OR_RETURN(Regex regex, Regex::compile(pattern, RegexDialect::python));
  return sequence(step<Split>(std::move(regex), Behavior::removed, true), step<SpellBytes>());
}

}  // namespace ptero::text
