// SPDX-License-Identifier: BSD-3-Clause
#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "text/jinja/ast.h"
#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

Error at_line(std::string_view source, size_t position, std::string_view what) {
  return make_error(ErrorCode::invalid_program, "Chat template, line {}: {}.",
                    line_of(source, position), what);
}

class Lexer {
 public:
  explicit Lexer(const std::string& source) : source_(source) {}

  Result<std::vector<Segment>> run() {
    while (at_ < source_.size()) {
      const size_t open = next_open(at_);
      const std::string_view text = source_.substr(at_, open - at_);
      if (open == source_.size()) {
        push_text(text);
        break;
      }
      const char kind = source_[open + 1];
      at_ = open + 2;
      const char control = at_ < source_.size() ? source_[at_] : '\0';
      push_text(before_tag(text, kind, control));
      at_ += control == '-' || control == '+' ? 1 : 0;
      if (kind == '#') {
        PTERO_RETURN_IF_ERROR(comment(open));
      } else {
        PTERO_RETURN_IF_ERROR(tag(open, kind));
      }
    }
    return std::move(segments_);
  }

 private:
  size_t next_open(size_t from) const {
    for (size_t i = from; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' &&
          (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) {
        return i;
      }
    }
    return source_.size();
  }

  void push_text(std::string_view text) {
    if (!text.empty()) {
      segments_.push_back({Segment::Kind::text, std::string(text), {}, at_});
    }
  }

  // What of the text before a tag stays.
  std::string_view before_tag(std::string_view text, char kind, char control) const {
    if (control == '-') {
      while (!text.empty() && is_space(text.back())) {
        text.remove_suffix(1);
      }
    } else if (kind != '{' && control != '+') {
      const size_t line = text.rfind('\n') + 1;  // 0 when there is none
      const bool blank =
          std::all_of(text.begin() + static_cast<ptrdiff_t>(line), text.end(), is_space);
      if ((line > 0 || line_start_) && blank) {
        text = text.substr(0, line);
      }
    }
    return text;
  }

  // Goes on after a tag that ends with `control` and a bracket.
  void after_tag(char control, bool output) {
    line_start_ = false;
    if (control == '-') {
      while (at_ < source_.size() && is_space(source_[at_])) {
        line_start_ = source_[at_++] == '\n';
      }
    } else if (!output && control != '+' && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
      line_start_ = true;
    }
  }

  Status comment(size_t open) {
    const size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) {
      return at_line(source_, open, "a comment has no end");
    }
    const char control = close > at_ ? source_[close - 1] : '\0';
    at_ = close + 2;
    after_tag(control, false);
    return ok_status();
  }

  Status tag(size_t open, char kind) {
    Segment segment{kind == '{' ? Segment::Kind::output : Segment::Kind::tag, "", {}, open};
    const std::string_view close = kind == '{' ? "}}" : "%}";
    size_t brackets = 0;
    while (true) {
      while (at_ < source_.size() && is_space(source_[at_])) {
        ++at_;
      }
      if (at_ == source_.size()) {
        return at_line(source_, open, "a tag has no end");
      }
      const std::string_view rest = source_.substr(at_);
      const bool controlled = rest[0] == '-' || rest[0] == '+';
      if (brackets == 0 && rest.substr(controlled ? 1 : 0).starts_with(close)) {
        at_ += close.size() + (controlled ? 1 : 0);
        segment.tokens.push_back({TokenKind::end, "", 0, 0, at_});
        const bool raw =
            kind == '%' && segment.tokens.size() == 2 && segment.tokens[0].text == "raw";
        after_tag(controlled ? rest[0] : '\0', kind == '{');
        if (raw) {
          return raw_text(open);
        }
        segments_.push_back(std::move(segment));
        return ok_status();
      }
      PTERO_ASSIGN_OR_RETURN(Token token, next_token());
      if (token.kind == TokenKind::symbol) {
        const char c = token.text[0];
        brackets += c == '(' || c == '[' || c == '{' ? 1 : 0;
        brackets -= (c == ')' || c == ']' || c == '}') && brackets > 0 ? 1 : 0;
      }
      segment.tokens.push_back(std::move(token));
    }
  }

  // Up to {% endraw %} everything is text.
  Status raw_text(size_t open) {
    for (size_t i = at_; (i = source_.find("{%", i)) != std::string_view::npos; i += 2) {
      size_t name = i + 2;
      const char control = name < source_.size() ? source_[name] : '\0';
      name += control == '-' || control == '+' ? 1 : 0;
      while (name < source_.size() && is_space(source_[name])) {
        ++name;
      }
      const size_t close = source_.find("%}", name);
      if (source_.substr(name, 6) == "endraw" && close != std::string_view::npos) {
        push_text(before_tag(source_.substr(at_, i - at_), '%', control));
        const char after = source_[close - 1];
        at_ = close + 2;
        after_tag(after, false);
        return ok_status();
      }
    }
    return at_line(source_, open, "tag raw has no end");
  }

  Result<Token> next_token() {
    const size_t start = at_;
    const char c = source_[at_];
    if (is_name_start(c)) {
      while (at_ < source_.size() && (is_name_start(source_[at_]) || is_digit(source_[at_]))) {
        ++at_;
      }
      return Token{TokenKind::name, std::string(source_.substr(start, at_ - start)), 0, 0, start};
    }
    if (is_digit(c)) {
      return number(start);
    }
    if (c == '"' || c == '\'') {
      return string(start, c);
    }
    static constexpr std::array<std::string_view, 6> kPairs = {"==", "!=", "<=", ">=", "//", "**"};
    for (const std::string_view pair : kPairs) {
      if (source_.substr(at_).starts_with(pair)) {
        at_ += 2;
        return Token{TokenKind::symbol, std::string(pair), 0, 0, start};
      }
    }
    if (std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos) {
      return at_line(source_, start,
                     fmt::format("character ({}) stands in a tag",
                                 source_.substr(start, utf8_size(source_, start))));
    }
    ++at_;
    return Token{TokenKind::symbol, std::string(1, c), 0, 0, start};
  }

  Result<Token> number(size_t start) {
    bool real = false;
    while (at_ < source_.size()) {
      const char c = source_[at_];
      const bool point =
          c == '.' && !real && at_ + 1 < source_.size() && is_digit(source_[at_ + 1]);
      const bool exponent =
          (c == 'e' || c == 'E') && at_ + 1 < source_.size() &&
          (is_digit(source_[at_ + 1]) || ((source_[at_ + 1] == '-' || source_[at_ + 1] == '+') &&
                                          at_ + 2 < source_.size() && is_digit(source_[at_ + 2])));
      if (!is_digit(c) && c != '_' && !point && !exponent) {
        break;
      }
      real |= point || exponent;
      at_ += exponent ? 2 : 1;
    }
    std::string digits(source_.substr(start, at_ - start));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    Token token{real ? TokenKind::real : TokenKind::integer, digits, 0, 0, start};
    const char* end = digits.data() + digits.size();
    const auto parsed = real ? std::from_chars(digits.data(), end, token.real)
                             : std::from_chars(digits.data(), end, token.integer);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return at_line(source_, start, fmt::format("number ({}) is out of range", digits));
    }
    return token;
  }

  Result<Token> string(size_t start, char quote) {
    std::string text;
    ++at_;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] != '\\' || at_ + 1 == source_.size()) {
        text += source_[at_++];
        continue;
      }
      const char c = source_[at_ + 1];
      at_ += 2;
      switch (c) {
        case 'n':
          text += '\n';
          break;
        case 't':
          text += '\t';
          break;
        case 'r':
          text += '\r';
          break;
        case 'b':
          text += '\b';
          break;
        case 'f':
          text += '\f';
          break;
        case 'v':
          text += '\v';
          break;
        case 'a':
          text += '\a';
          break;
        case '0':
          text += '\0';
          break;
        case '\n':
          break;
        case '\\':
        case '\'':
        case '"':
          text += c;
          break;
        case 'x':
        case 'u':
        case 'U': {
          const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
          uint32_t value = 0;
          const std::string_view hex = source_.substr(std::min(at_, source_.size()), digits);
          const auto parsed = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
          const bool character = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
          if (hex.size() != digits || parsed.ptr != hex.data() + digits || !character) {
            return at_line(source_, start, "a string holds an escape that is no character");
          }
          append_utf8(text, value);
          at_ += digits;
          break;
        }
        default:
          text.append({'\\', c});
      }
    }
    if (at_ == source_.size()) {
      return at_line(source_, start, "a string has no end");
    }
    ++at_;
    return Token{TokenKind::string, text, 0, 0, start};
  }

  std::string_view source_;
  std::vector<Segment> segments_;
  size_t at_ = 0;
  bool line_start_ = true;
};

}  // namespace

Result<std::vector<Segment>> cut_template(const std::string& source) {
  return Lexer(source).run();
}

}  // namespace ptero::text::jinja
