// SPDX-License-Identifier: BSD-3-Clause
// Expressions by recursive descent, one function a level of precedence. Internal to src/text.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "text/jinja/token_reader.h"

namespace ptero::text::jinja {

class ExpressionParser : protected TokenReader {
 protected:
  // Operators of one level of precedence, which group from the left.
  using Level = std::initializer_list<std::pair<std::string_view, Op>>;

  using TokenReader::TokenReader;

  Expr* make(Op op, std::initializer_list<const Expr*> children = {}) {
    Expr& made = made_.exprs.emplace_back();
    made.op = op;
    made.position = peek().position;
    for (const Expr* child : children) {
      adopt(made, child);
    }
    return &made;
  }
  void adopt(Expr& parent, const Expr* child) {
    parent.children.push_back(child);
    if (child != nullptr) {
      parent.depth = std::max(parent.depth, child->depth + 1);
      if (parent.depth > kMaxDepth) {
        fail(parent.position, "an expression nests too deeply");
      }
    }
  }

  // One expression, or several with commas as a list.
  const Expr* tuple() {
    const Expr* first = expression();
    if (failed() || !take(",")) {
      return first;
    }
    Expr* made = make(Op::list, {first});
    while (!failed() && peek().kind != TokenKind::end && peek().text != ")") {
      adopt(*made, expression());
      if (!take(",")) {
        break;
      }
    }
    return made;
  }

  const Expr* expression() {
    if (++depth_ > kMaxDepth) {
      fail(peek().position, "an expression nests too deeply");
    }
    const Expr* value = or_expression();
    while (!failed() && take_name("if")) {
      const Expr* condition = or_expression();
      value = make(Op::if_else, {value, condition, take_name("else") ? expression() : nullptr});
    }
    --depth_;
    return value;
  }

  const Expr* or_expression() {
    const Expr* left = and_expression();
    while (!failed() && take_name("or")) {
      left = make(Op::or_, {left, and_expression()});
    }
    return left;
  }

  const Expr* and_expression() {
    const Expr* left = not_expression();
    while (!failed() && take_name("and")) {
      left = make(Op::and_, {left, not_expression()});
    }
    return left;
  }

  const Expr* not_expression() {
    size_t count = 0;
    while (take_name("not")) {
      ++count;
    }
    const Expr* made = comparison();
    for (; count > 0 && !failed(); --count) {
      made = make(Op::not_, {made});
    }
    return made;
  }

  const Expr* comparison() {
    static const Level kOps = {{"==", Op::equal},      {"!=", Op::not_equal},
                               {"<=", Op::less_equal}, {">=", Op::greater_equal},
                               {"<", Op::less},        {">", Op::greater}};
    const Expr* left = additive();
    const Expr* chain = nullptr;
    while (!failed()) {
      Op op = Op::none;
      for (const auto& [symbol, candidate] : kOps) {
        if (op == Op::none && take(symbol)) {
          op = candidate;
        }
      }
      if (op == Op::none && take_name("in")) {
        op = Op::in;
      }
      if (op == Op::none && peek().text == "not" && peek(1).text == "in") {
        token_ += 2;
        op = Op::not_in;
      }
      if (op == Op::none) {
        break;
      }
      const Expr* right = additive();
      const Expr* one = make(op, {left, right});
      chain = chain == nullptr ? one : make(Op::and_, {chain, one});  // a < b < c
      left = right;
    }
    return chain == nullptr ? left : chain;
  }

  template <typename Next>
  const Expr* from_left(const Level& level, Next&& operand) {
    const Expr* left = operand();
    while (!failed()) {
      const auto* found = std::find_if(level.begin(), level.end(),
                                       [&](const auto& entry) { return take(entry.first); });
      if (found == level.end()) {
        break;
      }
      left = make(found->second, {left, operand()});
    }
    return left;
  }

  const Expr* additive() {
    static const Level kLevel = {{"+", Op::add}, {"-", Op::subtract}};
    return from_left(kLevel, [&] { return concatenation(); });
  }
  const Expr* concatenation() {
    static const Level kLevel = {{"~", Op::concat}};
    return from_left(kLevel, [&] { return multiplicative(); });
  }
  const Expr* multiplicative() {
    static const Level kLevel = {
        {"//", Op::floor_divide}, {"*", Op::multiply}, {"/", Op::divide}, {"%", Op::modulo}};
    return from_left(kLevel, [&] { return power(); });
  }
  const Expr* power() {
    static const Level kLevel = {{"**", Op::power}};
    return from_left(kLevel, [&] { return unary(true); });
  }

  const Expr* unary(bool filters) {
    if (++depth_ > kMaxDepth) {
      fail(peek().position, "an expression nests too deeply");
    }
    const Expr* made = nullptr;
    if (take("-")) {
      made = make(Op::negative, {unary(false)});
    } else if (take("+")) {
      made = make(Op::positive, {unary(false)});
    } else {
      made = postfix(primary());
    }
    while (filters && !failed()) {
      if (take("|")) {
        made = filter(made);
      } else if (take_name("is")) {
        made = test(made);
      } else {
        break;
      }
    }
    --depth_;
    return made;
  }

  const Expr* filter(const Expr* input) {
    Expr* made = make(Op::filter, {input});
    made->text = name();
    if (take("(")) {
      arguments(*made);
    }
    return made;
  }

  const Expr* test(const Expr* input) {
    const bool negated = take_name("not");
    Expr* made = make(Op::test, {input});
    made->text = name();
    if (take("(")) {
      arguments(*made);
    } else {
      const Token& token = peek();
      const bool value = token.kind == TokenKind::string || token.kind == TokenKind::integer ||
                         token.kind == TokenKind::real || token.text == "[" || token.text == "{" ||
                         (token.kind == TokenKind::name && token.text != "else" &&
                          token.text != "or" && token.text != "and" && token.text != "if" &&
                          token.text != "is" && token.text != "in" && token.text != "not");
      if (!failed() && value) {
        adopt(*made, postfix(primary()));
      }
    }
    return negated ? make(Op::not_, {made}) : made;
  }

  void add_named(Expr& call, std::string name, const Expr* value) {
    call.named.emplace_back(std::move(name), value);
    call.depth = std::max(call.depth, value->depth + 1);
  }

  void arguments(Expr& call) {
    while (!failed() && !take(")")) {
      if (peek().kind == TokenKind::name && peek(1).text == "=" &&
          peek(1).kind == TokenKind::symbol) {
        std::string name = next().text;
        next();
        add_named(call, std::move(name), expression());
      } else if (take("*")) {
        add_named(call, "*", expression());
      } else {
        adopt(call, expression());
      }
      if (!take(",") && peek().text != ")") {
        unexpected(")");
      }
    }
  }

  const Expr* postfix(const Expr* base) {
    while (!failed()) {
      if (take(".")) {
        Expr* made = make(Op::attribute, {base});
        if (peek().kind == TokenKind::integer) {
          made->op = Op::subscript;
          Expr* index = make(Op::integer);
          index->integer = next().integer;
          adopt(*made, index);
        } else {
          made->text = name();
        }
        base = made;
      } else if (take("[")) {
        base = subscript(base);
      } else if (take("(")) {
        Expr* made = make(Op::call, {base});
        arguments(*made);
        base = made;
      } else {
        break;
      }
    }
    return base;
  }

  const Expr* subscript(const Expr* base) {
    const auto part = [&]() -> const Expr* {
      return peek().text == ":" || peek().text == "]" ? nullptr : expression();
    };
    const Expr* start = part();
    if (!take(":")) {
      if (start == nullptr) {
        unexpected("an index");
        return base;
      }
      const Expr* made = make(Op::subscript, {base, start});
      expect("]");
      return made;
    }
    const Expr* stop = part();
    const Expr* step = take(":") ? part() : nullptr;
    expect("]");
    return make(Op::slice, {base, start, stop, step});
  }

  const Expr* primary() {
    const Token& token = peek();
    if (failed()) {
      return make(Op::none);
    }
    switch (token.kind) {
      case TokenKind::string: {
        Expr* made = make(Op::string);
        while (!failed() && peek().kind == TokenKind::string) {
          made->text += next().text;
        }
        return made;
      }
      case TokenKind::integer: {
        Expr* made = make(Op::integer);
        made->integer = next().integer;
        return made;
      }
      case TokenKind::real: {
        Expr* made = make(Op::real);
        made->real = next().real;
        return made;
      }
      case TokenKind::name:
        return named_primary();
      case TokenKind::symbol:
        if (take("(")) {
          if (take(")")) {
            return make(Op::list);
          }
          const Expr* made = tuple();
          expect(")");
          return made;
        }
        if (take("[")) {
          Expr* made = make(Op::list);
          while (!failed() && !take("]")) {
            adopt(*made, expression());
            if (!take(",") && peek().text != "]") {
              unexpected("]");
            }
          }
          return made;
        }
        if (take("{")) {
          return dict();
        }
        break;
      case TokenKind::end:
        break;
    }
    unexpected("a value");
    return make(Op::none);
  }

  const Expr* named_primary() {
    const std::string text = next().text;
    const bool yes = text == "true" || text == "True";
    if (yes || text == "false" || text == "False") {
      Expr* made = make(Op::boolean);
      made->integer = yes ? 1 : 0;
      return made;
    }
    if (text == "none" || text == "None") {
      return make(Op::none);
    }
    Expr* made = make(Op::name);
    made->text = text;
    return made;
  }

  const Expr* dict() {
    Expr* made = make(Op::dict);
    while (!failed() && !take("}")) {
      adopt(*made, expression());
      expect(":");
      adopt(*made, expression());
      if (!take(",") && peek().text != "}") {
        unexpected("}");
      }
    }
    return made;
  }
};

}  // namespace ptero::text::jinja
