// SPDX-License-Identifier: BSD-3-Clause
// The tokens of one tag, and the first error. Internal to src/text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace ptero::text::jinja {

// Once something is wrong, error_ is set, the tokens are at their end, and results mean nothing.
class TokenReader {
 protected:
  static constexpr size_t kMaxDepth = 100;  // of expressions and of tags

  explicit TokenReader(Template& made) : made_(made) {}

  bool failed() const { return !error_.empty(); }
  void fail(size_t position, std::string_view what) {
    if (!failed()) {
      error_ = fmt::format("Chat template, line {}: {}.", line_of(made_.source, position), what);
    }
  }

  void start(const Segment& segment) {
    tokens_ = &segment.tokens;
    token_ = 0;
  }

  const Token& peek(size_t ahead = 0) const {
    return (
        *tokens_)[failed() ? tokens_->size() - 1 : std::min(token_ + ahead, tokens_->size() - 1)];
  }
  const Token& next() {
    const Token& token = peek();
    ++token_;
    return token;
  }
  bool take(std::string_view symbol) {
    const bool found = peek().kind == TokenKind::symbol && peek().text == symbol;
    token_ += found ? 1 : 0;
    return found;
  }
  bool take_name(std::string_view name) {
    const bool found = peek().kind == TokenKind::name && peek().text == name;
    token_ += found ? 1 : 0;
    return found;
  }
  void unexpected(std::string_view wanted) {
    const Token& token = peek();
    fail(token.position,
         token.kind == TokenKind::end
             ? fmt::format("a tag ends where {} belongs", wanted)
             : fmt::format("({}) stands where {} belongs", token.text.substr(0, 32), wanted));
  }
  void expect(std::string_view symbol) {
    if (!take(symbol)) {
      unexpected(symbol);
    }
  }
  void expect_end() {
    if (!failed() && peek().kind != TokenKind::end) {
      unexpected("the end of the tag");
    }
  }
  std::string name() {
    if (peek().kind != TokenKind::name) {
      unexpected("a name");
      return "";
    }
    return next().text;
  }

  Template& made_;
  const std::vector<Token>* tokens_ = nullptr;
  size_t token_ = 0;
  size_t depth_ = 0;
  std::string error_;
};

}  // namespace ptero::text::jinja
