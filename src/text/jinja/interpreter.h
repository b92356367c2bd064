// SPDX-License-Identifier: BSD-3-Clause
// Runs a template. Internal to src/text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace ptero::text::jinja {

struct Arguments {
  std::vector<Value> values;  // positional
  std::vector<std::pair<std::string_view, Value>> named;

  // The argument at `position` or called `name`; null when it is not given.
  const Value* find(size_t position, std::string_view name) const;
};

inline int64_t integer_or(const Value* value, int64_t fallback) {
  return value != nullptr && value->is_integer() ? value->integer : fallback;
}

class Interpreter {
 public:
  Interpreter(const Template& source, Heap& heap, size_t max_output)
      : template_(source), heap_(heap), max_output_(max_output) {}

  void set(std::string_view name, Value value) { globals_.set(name, value); }
  // The heap holds the error if there is one.
  std::string run();
  // Where an error happened, and whether the template raised it.
  size_t error_line() const { return error_line_; }
  bool raised() const { return raised_; }

 private:
  static constexpr size_t kMaxDepth = 400;  // of expressions, tags and macros within each other

  struct Scope {
    std::vector<std::pair<std::string_view, Value>> variables;
    Scope* parent = nullptr;

    void set(std::string_view name, Value value);
    // Adds the number of variables that it may have looked at to `seen`.
    const Value* find(std::string_view name, size_t* seen = nullptr) const;
  };
  enum class Flow { go_on, break_, continue_ };

  Flow body(const Body& nodes, Scope& scope, std::string& out);
  Flow node(const Node& node, Scope& scope, std::string& out);
  Flow for_loop(const Node& node, Scope& scope, std::string& out);
  void assign(const std::vector<std::string>& names, const Value& value, Scope& scope);
  void set_statement(const Node& node, Scope& scope);
  void write(std::string& out, std::string_view text);

  Value eval(const Expr& expr, Scope& scope);
  Value eval_inner(const Expr& expr, Scope& scope);
  Value name(const Expr& expr, Scope& scope);
  Value attribute(const Value& base, std::string_view name);
  Value subscript(const Value& base, const Value& index);
  Value slice(const Expr& expr, Scope& scope);
  Value binary(const Expr& expr, Scope& scope);
  Value arithmetic(Op op, const Value& a, const Value& b);
  Value integers(Op op, int64_t a, int64_t b);
  Value call(const Expr& expr, Scope& scope);
  Value call_value(const Value& callee, const Arguments& arguments, std::string_view name);
  Value macro(const Node& macro, const Arguments& arguments);
  Value function(std::string_view name, const Arguments& arguments);
  Value range(const Arguments& arguments);
  Value repeat(std::string_view text, int64_t count);
  Arguments arguments(const Expr& expr, size_t first, Scope& scope);

  Value method(const Value& base, std::string_view name, const Arguments& arguments, bool& known);
  Value string_method(std::string_view text, std::string_view name, const Arguments& arguments,
                      bool& known);
  Value filter(std::string_view name, const Value& input, const Arguments& arguments);
  Value list_filter(std::string_view name, const Value& input, const Arguments& arguments,
                    bool& known);
  Value selecting_filter(std::string_view name, const Value& input, const Arguments& arguments);
  bool test(std::string_view name, const Value& input, const Arguments& arguments);
  Value sorted(const Value& input, const Arguments& arguments);
  Value path(Value base, std::string_view dotted);
  Value fail(std::string error) {
    heap_.fail(std::move(error));
    return {};
  }

  const Template& template_;
  Heap& heap_;
  size_t max_output_;
  Scope globals_;
  size_t depth_ = 0;
  size_t error_line_ = 0;
  bool raised_ = false;
};

}  // namespace ptero::text::jinja
