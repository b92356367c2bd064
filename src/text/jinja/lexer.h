// SPDX-License-Identifier: BSD-3-Clause
// Templates cut into text and tags, and tags into tokens. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptero::text::jinja {

enum class TokenKind { name, string, integer, real, symbol, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // of symbols as they are written
  int64_t integer = 0;
  double real = 0;
  size_t position = 0;
};

struct Segment {
  enum class Kind { text, output, tag } kind = Kind::text;
  std::string text;
  std::vector<Token> tokens;  // ends with one of kind end
  size_t position = 0;
};

// White space goes as in Hugging Face's templates: a line with nothing but a tag leaves nothing.
Result<std::vector<Segment>> cut_template(const std::string& source);

}  // namespace ptero::text::jinja
