// SPDX-License-Identifier: BSD-3-Clause
#include "text/decoder.h"

#include "text/byte_level.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxDecoderSteps = 64;
constexpr std::string_view kDecoder = "the tokenizer's decoder";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

using Kind = DecodeStep::Kind;

// Replacements that grow text by more than this, which only a hostile file asks for, are not made.
constexpr size_t kMaxGrowth = size_t{16} << 20;

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  size_t done = 0;
  while (!from.empty()) {
    const size_t at = text.find(from, done);
    if (at == std::string_view::npos) {
      break;
    }
    out.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
    if (out.size() > done + kMaxGrowth) {
      return std::string(text);
    }
  }
  return out.append(text.substr(done));
}

// A search can fail only by taking too long; then the text stays as it is, too.
std::string replaced(std::string_view text, const Regex& pattern, std::string_view to) {
  std::string out;
  size_t done = 0;
  Regex::Finder finder(pattern, text);
  while (true) {
    const auto match = finder.next();
    if (!match.ok()) {
      return std::string(text);
    }
    if (!*match) {
      return out.append(text.substr(done));
    }
    out.append(text.substr(done, (*match)->start - done)).append(to);
    done = (*match)->end;
    if (out.size() > done + kMaxGrowth) {
      return std::string(text);
    }
  }
}

// The byte that a token like "<0x0A>" is.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return std::nullopt;
  }
  unsigned value = 0;
  for (const char c : token.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    const bool upper = c >= 'A' && c <= 'F';
    const bool lower = c >= 'a' && c <= 'f';
    if (!digit && !upper && !lower) {
      return std::nullopt;
    }
    value = value * 16 + static_cast<unsigned>(digit   ? c - '0'
                                               : upper ? c - 'A' + 10
                                                       : c - 'a' + 10);
  }
  return static_cast<char>(value);
}

std::string tidy(std::string text) {
  constexpr std::string_view kRules[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                            {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                            {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                            {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    text = replaced(text, from, to);
  }
  return text;
}

}  // namespace

namespace detail {

DecodeState::DecodeState(const std::vector<DecodeStep>& steps) : steps_(&steps) {
  stages_.resize(steps.size());
  bool fused = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    stages_[i].fused = fused;
    fused |= steps[i].kind == Kind::fuse || steps[i].kind == Kind::byte_level ||
             steps[i].kind == Kind::join || steps[i].kind == Kind::sentence_piece;
  }
}

void DecodeState::push(std::string_view token, std::string& out) {
  feed(0, token, out);
}

void DecodeState::finish(std::string& out) {
  end(0, out);
  *this = DecodeState(*steps_);
}

void DecodeState::feed(size_t i, std::string_view text, std::string& out) {
  if (i == stages_.size()) {
    out += text;
    return;
  }
  const DecodeStep& step = (*steps_)[i];
  Stage& stage = stages_[i];
  const bool first = stage.tokens++ == 0;
  switch (step.kind) {
    case Kind::fuse:
      return feed(i + 1, text, out);
    case Kind::replace:
      if (stage.fused) {
        stage.held += text;
        return;
      }
      return feed(i + 1,
                  step.pattern ? replaced(text, *step.pattern, step.to)
                               : replaced(text, step.from, step.to),
                  out);
    case Kind::byte_fallback:
      if (const auto byte = byte_of(text)) {
        stage.held += *byte;
        return release_bytes(i, false, true, out);
      }
      release_bytes(i, true, true, out);
      return feed(i + 1, text, out);
    case Kind::byte_level:
      if (const auto bytes = unspell_bytes(text)) {
        stage.held += *bytes;
      } else {
        stage.held += text;
      }
      return release_bytes(i, false, false, out);
    case Kind::strip:
      return strip(i, text, out);
    case Kind::metaspace:
      return feed(i + 1, replaced(text, step.from, first && step.flag ? "" : " "), out);
    case Kind::join:
      return feed(i + 1, first ? std::string(text) : " " + std::string(text), out);
    case Kind::word_piece: {
      std::string word(text);
      if (!first) {
        word = text.starts_with(step.from) ? word.substr(step.from.size()) : " " + word;
      }
      return feed(i + 1, step.flag ? tidy(std::move(word)) : word, out);
    }
    case Kind::word_suffix:
      if (!first) {
        feed(i + 1, replaced(stage.held, step.from, " "), out);
      }
      stage.held = text;
      return;
    case Kind::sentence_piece:
      if (const auto byte = byte_of(text)) {
        stage.held += *byte;
        stage.started = true;
        return release_bytes(i, false, true, out);
      }
      release_bytes(i, true, true, out);
      if (!stage.started && step.count > 0 && text.starts_with(kSpaceMark)) {
        text.remove_prefix(kSpaceMark.size());
        stage.started = !step.flag;
      }
      stage.started |= !text.empty();
      return feed(i + 1, replaced(text, kSpaceMark, " "), out);
  }
}

void DecodeState::end(size_t i, std::string& out) {
  if (i == stages_.size()) {
    return;
  }
  const DecodeStep& step = (*steps_)[i];
  Stage& stage = stages_[i];
  switch (step.kind) {
    case Kind::byte_fallback:
    case Kind::sentence_piece:
      release_bytes(i, true, true, out);
      break;
    case Kind::byte_level:
      release_bytes(i, true, false, out);
      break;
    case Kind::replace:
      if (stage.fused) {
        feed(i + 1,
             step.pattern ? replaced(stage.held, *step.pattern, step.to)
                          : replaced(stage.held, step.from, step.to),
             out);
      }
      break;
    case Kind::word_suffix:
      if (stage.tokens > 0) {
        feed(i + 1, replaced(stage.held, step.from, ""), out);
      }
      break;
    case Kind::strip:  // what was held back in fear that it is the end is the end
    case Kind::fuse:
    case Kind::metaspace:
    case Kind::join:
    case Kind::word_piece:
      break;
  }
  end(i + 1, out);
}

// Passes on the characters that the bytes held so far make up; the incomplete one at their end only
// if `all`. A broken one is one U+FFFD, or one for `each_byte` of it.
void DecodeState::release_bytes(size_t i, bool all, bool each_byte, std::string& out) {
  std::string& held = stages_[i].held;
  std::string text;
  size_t at = 0;
  while (at < held.size()) {
    const std::string_view rest = std::string_view(held).substr(at);
    const Utf8Step step = utf8_step(rest);
    if (step.incomplete && !all) {
      break;
    }
    if (step.valid) {
      text += rest.substr(0, step.size);
    } else {
      for (size_t n = 0; n < (each_byte ? step.size : 1); ++n) {
        text += kReplacement;
      }
    }
    at += step.size;
  }
  held.erase(0, at);
  if (!text.empty()) {
    feed(i + 1, text, out);
  }
}

void DecodeState::strip(size_t i, std::string_view text, std::string& out) {
  const DecodeStep& step = (*steps_)[i];
  Stage& stage = stages_[i];
  if (!stage.fused) {
    stage = Stage();
  }
  while (!stage.started && stage.stripped < step.count && text.starts_with(step.from)) {
    text.remove_prefix(step.from.size());
    ++stage.stripped;
  }
  stage.started |= !text.empty();
  // The end may be cut off later: hold back as much of it as that could be.
  stage.held += text;
  size_t keep = stage.held.size();
  for (size_t n = 0; n < step.count_end; ++n) {
    if (!std::string_view(stage.held).substr(0, keep).ends_with(step.from)) {
      break;
    }
    keep -= step.from.size();
  }
  const std::string certain = stage.held.substr(0, keep);
  stage.held.erase(0, keep);
  if (!stage.fused) {
    stage.held.clear();
  }
  feed(i + 1, certain, out);
}

}  // namespace detail

namespace {

Result<DecodeStep> make_strip(const JsonValue& json) {
  DecodeStep step{.kind = Kind::strip};
  PTERO_ASSIGN_OR_RETURN(step.from, need_string(json, "content", kDecoder));
  PTERO_ASSIGN_OR_RETURN(const int64_t start, get_int(json, "start", 0, kDecoder));
  PTERO_ASSIGN_OR_RETURN(const int64_t stop, get_int(json, "stop", 0, kDecoder));
  PTERO_REJECT_IF(step.from.empty() || start < 0 || stop < 0, invalid_program,
                  "Step Strip of {} has content ({}), start ({}), stop ({}).", kDecoder, step.from,
                  start, stop);
  step.count = static_cast<size_t>(start);
  step.count_end = static_cast<size_t>(stop);
  return step;
}

Status append(const JsonValue& json, std::vector<DecodeStep>& steps) {
  PTERO_ASSIGN_OR_RETURN(const std::string type, need_string(json, "type", kDecoder));
  DecodeStep step;
  if (type == "Sequence") {
    PTERO_ASSIGN_OR_RETURN(const JsonArray* list, need_array(json, "decoders", kDecoder));
    for (const JsonValue& item : *list) {
      PTERO_RETURN_IF_ERROR(append(item, steps));
    }
    return ok_status();
  }
  if (type == "ByteLevel") {
    step.kind = Kind::byte_level;
  } else if (type == "ByteFallback") {
    step.kind = Kind::byte_fallback;
  } else if (type == "Fuse") {
    step.kind = Kind::fuse;
  } else if (type == "Strip") {
    PTERO_ASSIGN_OR_RETURN(step, make_strip(json));
  } else if (type == "Replace") {
    step.kind = Kind::replace;
    PTERO_ASSIGN_OR_RETURN(step.to, need_string(json, "content", kDecoder));
    const JsonValue* pattern = json.find("pattern");
    const JsonValue* text = pattern == nullptr ? nullptr : pattern->find("String");
    if (text != nullptr && text->string() != nullptr) {
      step.from = *text->string();
    } else {
      PTERO_ASSIGN_OR_RETURN(step.pattern, make_pattern(json, kDecoder));
    }
  } else if (type == "Metaspace") {
    step.kind = Kind::metaspace;
    PTERO_ASSIGN_OR_RETURN(step.from, get_string(json, "replacement", kSpaceMark, kDecoder));
    PTERO_ASSIGN_OR_RETURN(const bool prefix, get_bool(json, "add_prefix_space", true, kDecoder));
    PTERO_ASSIGN_OR_RETURN(const std::string scheme,
                           get_string(json, "prepend_scheme", "always", kDecoder));
    step.flag = prefix && scheme != "never";
  } else if (type == "WordPiece") {
    step.kind = Kind::word_piece;
    PTERO_ASSIGN_OR_RETURN(step.from, get_string(json, "prefix", "##", kDecoder));
    PTERO_ASSIGN_OR_RETURN(step.flag, get_bool(json, "cleanup", true, kDecoder));
  } else if (type == "BPEDecoder") {
    step.kind = Kind::word_suffix;
    PTERO_ASSIGN_OR_RETURN(step.from, get_string(json, "suffix", "</w>", kDecoder));
  } else {
    return make_error(ErrorCode::unsupported, "Decoder ({}) of the tokenizer is not supported.",
                      type);
  }
  PTERO_REJECT_IF(steps.size() == kMaxDecoderSteps, invalid_program,
                  "The tokenizer's decoder has more steps than the limit ({}).", kMaxDecoderSteps);
  steps.push_back(std::move(step));
  return ok_status();
}

}  // namespace

Result<std::vector<DecodeStep>> make_decoder(const JsonValue& json) {
  std::vector<DecodeStep> steps;
  if (json.is_null()) {
    steps.push_back({.kind = Kind::join});
    return steps;
  }
  PTERO_RETURN_IF_ERROR(append(json, steps));
  return steps;
}

}  // namespace ptero::text
