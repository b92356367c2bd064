// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "text/jinja/expression_parser.h"
#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

constexpr size_t kMaxSource = size_t{1} << 20;

class Parser : ExpressionParser {
 public:
  Parser(Template& made, std::vector<Segment> segments)
      : ExpressionParser(made), segments_(std::move(segments)) {}

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

  std::vector<Segment> segments_;
  size_t index_ = 0;
  size_t loops_ = 0;
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
      i += i + 1 < source.size() && source[i + 1] == '\n' ? size_t{1} : 0;
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
