// SPDX-License-Identifier: BSD-3-Clause
// Names, and what is called: macros and the functions that templates have.
#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/chrono.h>

#include "text/jinja/interpreter.h"

namespace ptero::text::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;

constexpr std::array<std::string_view, 5> kFunctions = {"range", "namespace", "dict",
                                                        "raise_exception", "strftime_now"};

Value function_value(size_t index) {
  Value value = Value::of(Kind::function);
  value.integer = static_cast<int64_t>(index);
  return value;
}

}  // namespace

const Value* Arguments::find(size_t position, std::string_view name) const {
  if (position < values.size()) {
    return &values[position];
  }
  for (const auto& [key, value] : named) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

Value Interpreter::name(const Expr& expr, Scope& scope) {
  size_t seen = 0;
  const Value* found = scope.find(expr.text, &seen);
  if (!heap_.work(seen * sizeof(Value))) {
    return {};
  }
  if (found != nullptr) {
    return *found;
  }
  const auto function = std::find(kFunctions.begin(), kFunctions.end(), expr.text);
  if (function != kFunctions.end()) {
    return function_value(static_cast<size_t>(function - kFunctions.begin()));
  }
  return heap_.undefined(expr.text);
}

Arguments Interpreter::arguments(const Expr& expr, size_t first, Scope& scope) {
  Arguments made;
  for (size_t i = first; i < expr.children.size(); ++i) {
    made.values.push_back(eval(*expr.children[i], scope));
  }
  for (const auto& [name, value] : expr.named) {
    const Value given = eval(*value, scope);
    if (name != "*") {
      made.named.emplace_back(name, given);
    } else if (const List* items = heap_.elements(given)) {
      made.values.insert(made.values.end(), items->begin(), items->end());
    }
  }
  return made;
}

Value Interpreter::call(const Expr& expr, Scope& scope) {
  const Expr& callee = *expr.children[0];
  if (callee.op != Op::attribute) {
    const Value target = eval(callee, scope);
    return call_value(target, arguments(expr, 1, scope), callee.text);
  }
  const Value base = eval(*callee.children[0], scope);
  const Arguments given = arguments(expr, 1, scope);
  if (!heap_.work(base)) {
    return {};
  }
  bool known = false;
  const Value result = method(base, callee.text, given, known);
  return known ? result : call_value(attribute(base, callee.text), given, callee.text);
}

Value Interpreter::call_value(const Value& callee, const Arguments& given, std::string_view name) {
  if (heap_.failed()) {
    return {};
  }
  if (callee.is(Kind::macro)) {
    return macro(*callee.macro, given);
  }
  if (callee.is(Kind::function)) {
    return function(kFunctions[static_cast<size_t>(callee.integer)], given);
  }
  return fail(fmt::format("({}) is {} and cannot be called", name, kind_name(callee)));
}

Value Interpreter::macro(const Node& macro, const Arguments& given) {
  if (given.values.size() > macro.parameters.size()) {
    return fail(fmt::format("macro ({}) takes {} arguments, not {}", macro.text,
                            macro.parameters.size(), given.values.size()));
  }
  Scope inner{{}, &globals_};
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [name, fallback] = macro.parameters[i];
    const Value* value = given.find(i, name);
    inner.set(name, value != nullptr      ? *value
                    : fallback != nullptr ? eval(*fallback, inner)
                                          : heap_.undefined(name));
  }
  std::string out;
  body(macro.body, inner, out);
  return heap_.string(std::move(out));
}

Value Interpreter::range(const Arguments& given) {
  int64_t bounds[3] = {0, 0, 1};
  const size_t count = given.values.size();
  const bool integers = std::all_of(given.values.begin(), given.values.end(),
                                    [](const Value& value) { return value.is_integer(); });
  if (count < 1 || count > 3 || !integers) {
    return fail("range() takes one to three integers");
  }
  for (size_t i = 0; i < count; ++i) {
    bounds[count == 1 ? 1 : i] = given.values[i].integer;
  }
  const auto [start, stop, step] = bounds;
  List made;
  if (step == 0) {
    return fail("range() has the step 0");
  }
  int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (static_cast<int64_t>(made.size()) == kMaxRange) {
      return fail(fmt::format("range() is longer than the limit ({})", kMaxRange));
    }
    made.push_back(Value::of(at));
    if (__builtin_add_overflow(at, step, &at)) {
      break;
    }
  }
  return heap_.list(std::move(made));
}

Value Interpreter::function(std::string_view name, const Arguments& given) {
  if (name == "range") {
    return range(given);
  }
  if (name == "raise_exception") {
    const Value* message = given.find(0, "message");
    raised_ = true;
    return fail(message == nullptr ? "it refuses the conversation" : heap_.str(*message));
  }
  if (name == "strftime_now") {
    const Value* format = given.find(0, "format");
    if (format == nullptr || !format->is(Kind::string) || format->string->size() > 200) {
      return fail("strftime_now() takes a format");
    }
    const std::string& text = *format->string;
    for (size_t i = 0; (i = text.find('%', i)) != std::string::npos; i += 2) {
      i += i + 1 < text.size() && text[i + 1] == '-' ? size_t{1} : 0;
      constexpr std::string_view kKnown = "aAbBcdDeFHIjmMnpRSTuUVwWxXyYzZ%";
      if (i + 1 >= text.size() || kKnown.find(text[i + 1]) == std::string_view::npos) {
        return fail(fmt::format("strftime_now() has the unknown format ({})", text));
      }
    }
    const std::tm now = fmt::gmtime(std::time(nullptr));
    char buffer[4096];
    return heap_.string(
        std::string(buffer, std::strftime(buffer, sizeof buffer, text.c_str(), &now)));
  }
  // namespace() and dict()
  Dict made;
  for (const Value& value : given.values) {
    if (!value.is_mapping()) {
      return fail(fmt::format("{}() takes named values, not {}", name, kind_name(value)));
    }
    made = *value.dict;
  }
  for (const auto& [key, value] : given.named) {
    made.items.emplace_back(heap_.string(std::string(key)), value);
  }
  return heap_.dict(std::move(made), name == "dict" ? Kind::dict : Kind::space);
}

}  // namespace ptero::text::jinja
