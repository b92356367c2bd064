// SPDX-License-Identifier: BSD-3-Clause
#include "text/normalizer.h"

#include <functional>
#include <optional>
#include <utility>

#include "text/base64.h"
#include "text/byte_level.h"
#include "text/charsmap.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxSteps = 128;
constexpr std::string_view kWhere = "the tokenizer's normalizer";

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<NormalizerPtr> steps) : steps_(std::move(steps)) {}
  Status apply(std::string& text, size_t limit) const override {
    for (const NormalizerPtr& step : steps_) {
      PTERO_RETURN_IF_ERROR(step->apply(text, limit));
    }
    return ok_status();
  }

 private:
  std::vector<NormalizerPtr> steps_;
};

class Form : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  Status apply(std::string& text, size_t limit) const override {
    PTERO_ASSIGN_OR_RETURN(text, normal_form(text, form_));
    return check_normalized(text.size(), limit);
  }

 private:
  NormalForm form_;
};

class Replace : public Normalizer {
 public:
  Replace(Regex pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Status apply(std::string& text, size_t limit) const override {
    std::string out;
    size_t done = 0;
    Regex::Finder finder(pattern_, text);
    while (true) {
      PTERO_ASSIGN_OR_RETURN(const std::optional<Regex::Match> match, finder.next());
      if (!match) {
        break;
      }
      out.append(text, done, match->start - done).append(content_);
      done = match->end;
      PTERO_RETURN_IF_ERROR(check_normalized(out.size(), limit));
    }
    out.append(text, done);
    text = std::move(out);
    return check_normalized(text.size(), limit);
  }

 private:
  Regex pattern_;
  std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Status apply(std::string& text, size_t limit) const override {
    if (!text.empty()) {
      text.insert(0, prefix_);
    }
    return check_normalized(text.size(), limit);
  }

 private:
  std::string prefix_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  Status apply(std::string& text, size_t) const override {
    if (right_) {
      text.resize(trim_white_space(text));
    }
    if (left_) {
      text.erase(0, skip_white_space(text));
    }
    return ok_status();
  }

 private:
  bool left_, right_;
};

class Function : public Normalizer {
 public:
  explicit Function(std::function<std::string(std::string_view)> function)
      : function_(std::move(function)) {}
  Status apply(std::string& text, size_t limit) const override {
    text = function_(text);
    return check_normalized(text.size(), limit);
  }

 private:
  std::function<std::string(std::string_view)> function_;
};

// Each character by itself: `map` appends what becomes of it.
template <typename Map>
std::string map_characters(std::string_view text, Map&& map) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    map(out, step.code_point);
    at += step.size;
  }
  return out;
}

std::string without(bool (*kind)(uint32_t), std::string_view text) {
  return map_characters(text, [kind](std::string& out, uint32_t c) {
    if (!kind(c)) {
      append_utf8(out, c);
    }
  });
}

std::string strip_accents(std::string_view text) {
  return without(is_mark, text);
}

std::string nmt(std::string_view text) {
  return map_characters(text, [](std::string& out, uint32_t c) {
    const bool dropped = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) ||
                         c == 0x7F || c == 0x8F || c == 0x9F;
    const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xFEFF || c == 0xFFFD;
    if (!dropped) {
      append_utf8(out, space ? ' ' : c);
    }
  });
}

class Bert : public Normalizer {
 public:
  Bert(bool clean, bool chinese, bool accents, bool lower)
      : clean_(clean), chinese_(chinese), accents_(accents), lower_(lower) {}
  Status apply(std::string& text, size_t limit) const override {
    text = map_characters(text, [&](std::string& out, uint32_t c) {
      const bool line = c == '\t' || c == '\n' || c == '\r';
      const bool white = line || is_white_space(c);
      if (clean_ && (c == 0 || c == 0xFFFD || (is_other(c) && !line))) {
        return;
      }
      if (clean_ && white) {
        out += ' ';
      } else if (chinese_ && is_cjk(c)) {
        out += ' ';
        append_utf8(out, c);
        out += ' ';
      } else {
        append_utf8(out, c);
      }
    });
    if (accents_) {
      PTERO_ASSIGN_OR_RETURN(text, normal_form(text, NormalForm::nfd));
      text = without(is_nonspacing_mark, text);
    }
    if (lower_) {
      text = lower_case(text);
    }
    return check_normalized(text.size(), limit);
  }

 private:
  bool clean_, chinese_, accents_, lower_;
};

// As the tokenizers library reads the table: a grapheme cluster below six bytes as a whole, by the
// shortest entry it starts with, else its characters one by one.
class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {}
  Status apply(std::string& text, size_t limit) const override {
    std::string out;
    const std::string_view input = text;
    for (size_t at = 0; at < input.size();) {
      const size_t size = grapheme_size(input, at);
      const std::string_view cluster = input.substr(at, size);
      at += size;
      if (cluster.size() < 6) {
        if (const auto hit = map_.shortest_prefix(cluster)) {
          out += hit->replacement;
          continue;
        }
      }
      for (size_t i = 0; i < cluster.size();) {
        const std::string_view character = cluster.substr(i, utf8_size(cluster, i));
        const auto hit = map_.shortest_prefix(character);
        out += hit ? hit->replacement : character;
        i += character.size();
      }
      PTERO_RETURN_IF_ERROR(check_normalized(out.size(), limit));
    }
    text = std::move(out);
    return check_normalized(text.size(), limit);
  }

 private:
  Charsmap map_;
};

Result<NormalizerPtr> normalizer_from(const JsonValue& json, size_t& steps);

Result<NormalizerPtr> normalizers_from(const JsonValue& json, size_t& steps) {
  PTERO_ASSIGN_OR_RETURN(const JsonArray* list, need_array(json, "normalizers", kWhere));
  std::vector<NormalizerPtr> made;
  for (const JsonValue& item : *list) {
    PTERO_ASSIGN_OR_RETURN(NormalizerPtr step, normalizer_from(item, steps));
    made.push_back(std::move(step));
  }
  return NormalizerPtr(std::make_unique<NormalizerSequence>(std::move(made)));
}

Result<NormalizerPtr> make_replace(const JsonValue& json) {
  PTERO_ASSIGN_OR_RETURN(std::string content, need_string(json, "content", kWhere));
  PTERO_ASSIGN_OR_RETURN(Regex pattern, make_pattern(json, kWhere));
  return NormalizerPtr(std::make_unique<Replace>(std::move(pattern), std::move(content)));
}

Result<NormalizerPtr> make_bert(const JsonValue& json) {
  PTERO_ASSIGN_OR_RETURN(const bool clean, get_bool(json, "clean_text", true, kWhere));
  PTERO_ASSIGN_OR_RETURN(const bool chinese, get_bool(json, "handle_chinese_chars", true, kWhere));
  PTERO_ASSIGN_OR_RETURN(const bool lower, get_bool(json, "lowercase", true, kWhere));
  PTERO_ASSIGN_OR_RETURN(const bool accents, get_bool(json, "strip_accents", lower, kWhere));
  return NormalizerPtr(std::make_unique<Bert>(clean, chinese, accents, lower));
}

Result<NormalizerPtr> make_precompiled(const JsonValue& json) {
  PTERO_ASSIGN_OR_RETURN(const std::string coded,
                         get_string(json, "precompiled_charsmap", "", kWhere));
  PTERO_ASSIGN_OR_RETURN(const std::string bytes, decode_base64(coded));
  PTERO_ASSIGN_OR_RETURN(Charsmap map, Charsmap::read(bytes));
  return NormalizerPtr(std::make_unique<Precompiled>(std::move(map)));
}

Result<NormalizerPtr> normalizer_from(const JsonValue& json, size_t& steps) {
  PTERO_REJECT_IF(++steps > kMaxSteps, invalid_program,
                  "The tokenizer's normalizer has more steps than the limit ({}).", kMaxSteps);
  PTERO_ASSIGN_OR_RETURN(const std::string type, need_string(json, "type", kWhere));
  const auto function = [](std::string (*f)(std::string_view)) {
    return NormalizerPtr(std::make_unique<Function>(f));
  };
  const auto form = [](NormalForm f) { return NormalizerPtr(std::make_unique<Form>(f)); };
  if (type == "Sequence") {
    return normalizers_from(json, steps);
  }
  if (type == "NFC") {
    return form(NormalForm::nfc);
  }
  if (type == "NFD") {
    return form(NormalForm::nfd);
  }
  if (type == "NFKC") {
    return form(NormalForm::nfkc);
  }
  if (type == "NFKD") {
    return form(NormalForm::nfkd);
  }
  if (type == "Lowercase") {
    return function(lower_case);
  }
  if (type == "StripAccents") {
    return function(strip_accents);
  }
  if (type == "Nmt") {
    return function(nmt);
  }
  if (type == "ByteLevel") {
    return function(spell_bytes);
  }
  if (type == "Replace") {
    return make_replace(json);
  }
  if (type == "BertNormalizer") {
    return make_bert(json);
  }
  if (type == "Precompiled") {
    return make_precompiled(json);
  }
  if (type == "Prepend") {
    PTERO_ASSIGN_OR_RETURN(std::string prefix, need_string(json, "prepend", kWhere));
    return NormalizerPtr(std::make_unique<Prepend>(std::move(prefix)));
  }
  if (type == "Strip") {
    PTERO_ASSIGN_OR_RETURN(const bool left, get_bool(json, "strip_left", true, kWhere));
    PTERO_ASSIGN_OR_RETURN(const bool right, get_bool(json, "strip_right", true, kWhere));
    return NormalizerPtr(std::make_unique<Strip>(left, right));
  }
  return make_error(ErrorCode::unsupported, "Normalizer ({}) of the tokenizer is not supported.",
                    type);
}

}  // namespace

Result<NormalizerPtr> make_normalizer(const JsonValue& json) {
  if (json.is_null()) {
    return NormalizerPtr();
  }
  size_t steps = 0;
  return normalizer_from(json, steps);
}
}  // namespace ptero::text
