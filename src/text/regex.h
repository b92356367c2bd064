// SPDX-License-Identifier: BSD-3-Clause
// Regular expressions of tokenizer files, by PCRE2 in bounded time and memory. Internal to
// src/text.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/json.h"

namespace ptero::text {

// Whose rules a pattern was written for, where they differ.
enum class RegexDialect {
  oniguruma,  // tokenizer.json: ^ and $ match at every line
  python,     // tiktoken: $ matches at the very end
};

// Immutable; several threads may search at once.
class Regex {
 public:
  // Code invalid_program when the pattern is wrong.
  static Result<Regex> compile(std::string_view pattern, RegexDialect dialect);
  // A pattern that matches `text` as it stands.
  static Result<Regex> literal(std::string_view text);

  struct Match {
    size_t start = 0;
    size_t end = 0;
  };

  // Successive matches in valid UTF-8, with one budget of time for all of them.
  class Finder {
   public:
    Finder(const Regex& regex, std::string_view text);
    ~Finder();
    Finder(const Finder&) = delete;
    Finder& operator=(const Finder&) = delete;

    // The next match; nothing at the end of the text. Code invalid_argument when the search would
    // take too long.
    Result<std::optional<Match>> next();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

// The member "pattern" of a step of a tokenizer.json: {"String": ...} or {"Regex": ...}.
Result<Regex> make_pattern(const JsonValue& json, std::string_view where);

}  // namespace ptero::text
