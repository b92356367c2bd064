// SPDX-License-Identifier: BSD-3-Clause
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <algorithm>
#include <chrono>
#include <new>

#include <pcre2.h>

#include "text/utf8.h"

namespace ptero::text {

// Not in the namespace below: members of Regex are made of them.
struct CodeFree {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct CompileContextFree {
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
};
struct MatchContextFree {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct MatchDataFree {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
using CodePtr = std::unique_ptr<pcre2_code, CodeFree>;

namespace {

constexpr size_t kMaxPattern = 64 * 1024;
constexpr uint32_t kMatchLimit = 10'000'000;  // steps of one search: about half a second
constexpr uint32_t kHeapLimit = 256 * 1024;   // KiB of one search
constexpr uint32_t kNestLimit = 100;
constexpr auto kBaseTime = std::chrono::seconds(2);
constexpr auto kTimePerByte = std::chrono::microseconds(10);  // ordinary patterns take 0.05

using Clock = std::chrono::steady_clock;

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

CodePtr compile_raw(std::string_view pattern, uint32_t options, int& error, size_t& position) {
  const std::unique_ptr<pcre2_compile_context, CompileContextFree> context(
      pcre2_compile_context_create(nullptr));
  if (context == nullptr) {
    error = PCRE2_ERROR_NOMEMORY;
    return nullptr;
  }
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), kNestLimit);
  pcre2_set_max_pattern_length(context.get(), kMaxPattern);
  return CodePtr(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                               options, &error, &position, context.get()));
}

// The same property in PCRE2's words: long names of categories, and a script by its own members
// rather than by the extended ones that a bare name means there.
std::string property(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"Letter", "L"},
      {"Uppercase_Letter", "Lu"},
      {"Lowercase_Letter", "Ll"},
      {"Titlecase_Letter", "Lt"},
      {"Modifier_Letter", "Lm"},
      {"Other_Letter", "Lo"},
      {"Mark", "M"},
      {"Nonspacing_Mark", "Mn"},
      {"Number", "N"},
      {"Decimal_Number", "Nd"},
      {"Punctuation", "P"},
      {"Symbol", "S"},
      {"Separator", "Z"},
      {"Space_Separator", "Zs"},
      {"Other", "C"},
      {"Alpha", "Alphabetic"},
      {"Digit", "Nd"},
      {"Space", "White_Space"},
      {"Upper", "Uppercase"},
      {"Lower", "Lowercase"},
      {"Punct", "P"}};
  for (const auto& [theirs, ours] : kNames) {
    if (name == theirs) {
      return std::string(ours);
    }
  }
  if (name.size() > 2) {
    const std::string script = fmt::format("sc:{}", name);
    int error = 0;
    size_t position = 0;
    if (compile_raw(fmt::format("\\p{{{}}}", script), PCRE2_UTF, error, position) != nullptr) {
      return script;
    }
  }
  return std::string(name);
}

// PCRE2's \s and \w hold other characters than in the engines that patterns are written for.
std::string translate(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  size_t class_start = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's') {
        out += "\\p{White_Space}";
      } else if (next == 'S') {
        out += "\\P{White_Space}";
      } else if (next == 'w') {
        out += in_class ? "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
                        : "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
      } else if (next == 'W' && !in_class) {
        out += "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}]";
      } else if ((next == 'p' || next == 'P') && i + 1 < pattern.size() && pattern[i + 1] == '{') {
        const size_t close = pattern.find('}', i);
        if (close == std::string_view::npos || close - i > 64) {
          out.append({'\\', next});
          continue;
        }
        std::string_view name = pattern.substr(i + 2, close - i - 2);
        const bool negated = name.starts_with('^');
        name.remove_prefix(negated ? 1 : 0);
        out += fmt::format("\\{}{{{}{}}}", next, negated ? "^" : "", property(name));
        i = close;
      } else {
        out.append({'\\', next});
      }
      continue;
    }
    if (!in_class && c == '[') {
      in_class = true;
      class_start = i;
    } else if (in_class && c == ']' && i > class_start + 1 &&
               !(i == class_start + 2 && pattern[class_start + 1] == '^')) {
      in_class = false;
    }
    out += c;
  }
  return out;
}

}  // namespace

struct Regex::Code {
  CodePtr code;
};

Result<Regex> Regex::compile(std::string_view pattern, RegexDialect dialect) {
  PTERO_REJECT_IF(pattern.size() > kMaxPattern, invalid_program,
                  "Pattern is longer ({} bytes) than the limit ({}).", pattern.size(), kMaxPattern);
  uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  options |= dialect == RegexDialect::oniguruma ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY;
  if (pattern.find("&&") != std::string_view::npos) {
    options |= PCRE2_ALT_EXTENDED_CLASS;
  }
  int error = 0;
  size_t position = 0;
  const std::string ours = translate(pattern);
  CodePtr code = compile_raw(ours, options, error, position);
  PTERO_REJECT_IF(code == nullptr, invalid_program,
                  "Pattern ({}) is not a regular expression that we know: {}.", pattern,
                  message_of(error));
  Regex regex;
  regex.code_ = std::make_shared<Code>(Code{std::move(code)});
  return regex;
}

Result<Regex> Regex::literal(std::string_view text) {
  PTERO_REJECT_IF(text.size() > kMaxPattern, invalid_program,
                  "Pattern is longer ({} bytes) than the limit ({}).", text.size(), kMaxPattern);
  int error = 0;
  size_t position = 0;
  CodePtr code = compile_raw(text, PCRE2_UTF | PCRE2_LITERAL, error, position);
  PTERO_REJECT_IF(code == nullptr, invalid_program, "Text ({}) cannot be searched for: {}.", text,
                  message_of(error));
  Regex regex;
  regex.code_ = std::make_shared<Code>(Code{std::move(code)});
  return regex;
}

struct Regex::Finder::State {
  std::shared_ptr<const Regex::Code> code;
  std::string_view text;
  std::unique_ptr<pcre2_match_context, MatchContextFree> context;
  std::unique_ptr<pcre2_match_data, MatchDataFree> data;
  Clock::time_point deadline;
  size_t position = 0;
};

Regex::Finder::Finder(const Regex& regex, std::string_view text)
    : state_(std::make_unique<State>()) {
  state_->code = regex.code_;
  state_->text = text;
  state_->context.reset(pcre2_match_context_create(nullptr));
  state_->data.reset(pcre2_match_data_create(1, nullptr));
  state_->deadline = Clock::now() + kBaseTime + text.size() * kTimePerByte;
}

Regex::Finder::~Finder() = default;

Result<std::optional<Regex::Match>> Regex::Finder::next() {
  State& s = *state_;
  PTERO_REJECT_IF(s.context == nullptr || s.data == nullptr, out_of_memory,
                  "Memory for a search in text ({} bytes) is exhausted.", s.text.size());
  if (s.position > s.text.size()) {
    return std::optional<Match>();
  }
  PTERO_REJECT_IF(
      Clock::now() > s.deadline, invalid_argument,
      "Splitting text ({} bytes) takes longer than the limit ({} s); the tokenizer's "
      "pattern is too slow for it.",
      s.text.size(),
      std::chrono::duration_cast<std::chrono::seconds>(kBaseTime + s.text.size() * kTimePerByte)
          .count());
  // A long run of spaces is one legitimate search of many steps.
  const size_t limit = kMatchLimit + s.text.size() * 4;
  pcre2_set_match_limit(s.context.get(),
                        static_cast<uint32_t>(std::min<size_t>(limit, UINT32_MAX)));
  pcre2_set_heap_limit(s.context.get(), kHeapLimit);
  const int count =
      pcre2_match(s.code->code.get(), reinterpret_cast<PCRE2_SPTR>(s.text.data()), s.text.size(),
                  s.position, PCRE2_NO_UTF_CHECK, s.data.get(), s.context.get());
  if (count == PCRE2_ERROR_NOMATCH) {
    s.position = s.text.size() + 1;
    return std::optional<Match>();
  }
  PTERO_REJECT_IF(count < 0, invalid_argument,
                  "Text ({} bytes) cannot be split at byte {} by the tokenizer's pattern: {}.",
                  s.text.size(), s.position, message_of(count));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(s.data.get());
  // \K can put the start behind the end, or before where the search began.
  const size_t end = std::max(ends[1], s.position);
  const size_t start = std::clamp(ends[0], s.position, end);
  s.position = end;
  if (start == end) {
    s.position += end < s.text.size() ? utf8_size(s.text, end) : 1;
  }
  return std::optional<Match>(Match{start, end});
}

Result<Regex> make_pattern(const JsonValue& json, std::string_view where) {
  const JsonValue* pattern = json.find("pattern");
  const JsonValue* text = pattern == nullptr ? nullptr : pattern->find("String");
  if (text != nullptr && text->string() != nullptr) {
    return Regex::literal(*text->string());
  }
  const JsonValue* regex = pattern == nullptr ? nullptr : pattern->find("Regex");
  if (regex != nullptr && regex->string() != nullptr) {
    return Regex::compile(*regex->string(), RegexDialect::oniguruma);
  }
  return make_error(ErrorCode::invalid_program,
                    "Member (pattern) of {} is neither {{\"String\": ...}} nor {{\"Regex\": ...}}.",
                    where);
}

}  // namespace ptero::text
