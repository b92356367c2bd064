// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"
#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

constexpr size_t kMaxSource = size_t{1} << 20;
constexpr size_t kMaxDepth = 100;  // of expressions and of tags

// Operators of one level of precedence, which group from the left.
using Level = std::initializer_list<std::pair<std::string_view, Op>>;

// Once something is wrong, error_ is set, the tokens are at their end, and results mean nothing.
class Parser {
 public:
  Parser(Template& made, std::vector<Segment> segments)
      : made_(made), segments_(std::move(segments)) {}

  Status run() {
    made_.body = body({});
    if (!failed() && index_ < segments_.size()) {
      fail(segments_[index_].position, fmt::format("tag ({}) ends nothing", tag_name()));
    }
    if (failed()) {
      return Error(ErrorCode::invalid_program, error_);
    }
    return ok_status();
  }

 private:
  bool failed() const { return !error_.empty(); }
  void fail(size_t position, std::string_view what) {
    if (!failed()) {
      error_ = fmt::format("Chat template, line {}: {}.", line_of(made_.source, position), what);
    }
  }

  // Tags ------------------------------------------------------------------------------------

  std::string_view tag_name() const {
    return index_ < segments_.size() && segments_[index_].kind == Segment::Kind::tag
               ? std::string_view(segments_[index_].tokens[0].text)
               : std::string_view();
  }

  Node& node(Tag tag) {
    Node& made = made_.nodes.emplace_back();
    made.tag = tag;
    made.position = segments_[index_].position;
    return made;
  }

  // Up to a tag that is named in `ends`, which is not taken.
  Body body(std::initializer_list<std::string_view> ends) {
    Body made;
    if (++depth_ > kMaxDepth) {
      fail(segments_[std::min(index_, segments_.size() - 1)].position, "tags nest too deeply");
    }
    while (index_ < segments_.size() && !failed()) {
      Segment& segment = segments_[index_];
      if (segment.kind == Segment::Kind::tag) {
        const std::string_view name = tag_name();
        if (std::find(ends.begin(), ends.end(), name) != ends.end() || name.starts_with("end") ||
            name == "else" || name == "elif") {
          break;
        }
        statement(made);
      } else {
        Node& one = node(segment.kind == Segment::Kind::text ? Tag::text : Tag::output);
        one.text = std::move(segment.text);
        if (one.tag == Tag::output) {
          start(segment);
          one.expr = tuple();
          expect_end();
        }
        made.push_back(&one);
        ++index_;
      }
    }
    --depth_;
    return made;
  }

  void start(const Segment& segment) {
    tokens_ = &segment.tokens;
    token_ = 0;
  }

  // Takes the tag that ends another.
  void end_tag(std::string_view name, size_t opened) {
    if (failed()) {
      return;
    }
    if (tag_name() != name) {
      return fail(opened, fmt::format("tag has no end ({})", name));
    }
    ++index_;
  }

  void statement(Body& out) {
    const Segment& segment = segments_[index_];
    const std::string name(tag_name());
    start(segment);
    next();
    if (name == "if") {
      return if_statement(out);
    }
    if (name == "generation") {  // marks what training learns
      expect_end();
      ++index_;
      Body inner = body({});
      out.insert(out.end(), inner.begin(), inner.end());
      return end_tag("endgeneration", segment.position);
    }
    if (name == "for") {
      return for_statement(out);
    }
    if (name == "set") {
      return set_statement(out);
    }
    if (name == "macro") {
      return macro_statement(out);
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) {
        fail(segment.position, fmt::format("tag ({}) stands outside a loop", name));
      }
      out.push_back(&node(name == "break" ? Tag::break_ : Tag::continue_));
      expect_end();
      ++index_;
      return;
    }
    fail(segment.position, fmt::format("tag ({}) is not supported", name));
  }

  void if_statement(Body& out) {
    Node& made = node(Tag::if_);
    const size_t opened = made.position;
    made.branches.push_back({tuple(), {}});
    expect_end();
    ++index_;
    made.branches.back().body = body({});
    while (!failed() && (tag_name() == "elif" || tag_name() == "else")) {
      start(segments_[index_]);
      const bool last = tag_name() == "else";
      next();
      made.branches.push_back({last ? nullptr : tuple(), {}});
      expect_end();
      ++index_;
      made.branches.back().body = body({});
      if (last) {
        break;
      }
    }
    end_tag("endif", opened);
    out.push_back(&made);
  }

  std::vector<std::string> names() {
    std::vector<std::string> made;
    const bool bracket = take("(");
    do {
      made.push_back(name());
    } while (!failed() && take(","));
    if (bracket) {
      expect(")");
    }
    return made;
  }

  void for_statement(Body& out) {
    Node& made = node(Tag::for_);
    made.names = names();
    if (!take_name("in")) {
      unexpected("in");
    }
    made.expr = or_expression();  // a conditional would take the "if"
    if (take_name("if")) {
      made.condition = expression();
    }
    if (!failed() && peek().text == "recursive") {
      fail(made.position, "recursive loops are not supported");
    }
    expect_end();
    ++index_;
    ++loops_;
    made.body = body({});
    --loops_;
    if (!failed() && tag_name() == "else") {
      ++index_;
      made.otherwise = body({});
    }
    end_tag("endfor", made.position);
    out.push_back(&made);
  }

  void set_statement(Body& out) {
    Node& made = node(Tag::set);
    made.text = name();
    if (take(".")) {
      made.attribute = name();
    } else {
      made.names.push_back(made.text);
      while (!failed() && take(",")) {
        made.names.push_back(name());
      }
    }
    if (take("=")) {
      made.expr = tuple();
      expect_end();
      ++index_;
    } else {
      made.tag = Tag::set_block;
      expect_end();
      ++index_;
      made.body = body({});
      end_tag("endset", made.position);
    }
    out.push_back(&made);
  }

  void macro_statement(Body& out) {
    Node& made = node(Tag::macro);
    made.text = name();
    expect("(");
    while (!failed() && !take(")")) {
      std::string parameter = name();
      const Expr* fallback = take("=") ? expression() : nullptr;
      made.parameters.emplace_back(std::move(parameter), fallback);
      if (!take(",") && peek().text != ")") {
        unexpected(")");
      }
    }
    expect_end();
    ++index_;
    const size_t loops = std::exchange(loops_, 0);
    made.body = body({});
    loops_ = loops;
    end_tag("endmacro", made.position);
    out.push_back(&made);
  }

  // Tokens ----------------------------------------------------------------------------------

  const Token& peek(size_t ahead = 0) const {
    return (*tokens_)[failed() ? tokens_->size() - 1 : std::min(token_ + ahead, tokens_->size() - 1)];
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

  // Expressions -----------------------------------------------------------------------------

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
    static const Level kOps = {{"==", Op::equal},         {"!=", Op::not_equal},
                               {"<=", Op::less_equal},    {">=", Op::greater_equal},
                               {"<", Op::less},           {">", Op::greater}};
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

  Template& made_;
  std::vector<Segment> segments_;
  size_t index_ = 0;
  const std::vector<Token>* tokens_ = nullptr;
  size_t token_ = 0;
  size_t depth_ = 0;
  size_t loops_ = 0;
  std::string error_;
};

}  // namespace

size_t line_of(std::string_view source, size_t position) {
  const std::string_view before = source.substr(0, std::min(position, source.size()));
  return static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
}

Result<Template> parse_template(std::string_view source) {
  PTERO_REJECT_IF(source.size() > kMaxSource, invalid_program,
                  "Chat template is longer ({} bytes) than the limit ({}).", source.size(),
                  kMaxSource);
  std::string storage;
  PTERO_REJECT_IF(valid_utf8(source, storage).data() != source.data(), invalid_program,
                  "Chat template ({} bytes) is not UTF-8.", source.size());
  Template made;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      made.source += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
    } else {
      made.source += source[i];
    }
  }
  if (made.source.ends_with('\n')) {
    made.source.pop_back();
  }
  PTERO_ASSIGN_OR_RETURN(std::vector<Segment> segments, cut_template(made.source));
  PTERO_RETURN_IF_ERROR(Parser(made, std::move(segments)).run());
  return made;
}

}  // namespace ptero::text::jinja
