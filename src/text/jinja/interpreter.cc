// SPDX-License-Identifier: BSD-3-Clause
#include "text/jinja/interpreter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include <fmt/chrono.h>

#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

constexpr size_t kMaxDepth = 400;  // of expressions, tags and macros within each other
constexpr int64_t kMaxRange = 100'000;

constexpr std::array<std::string_view, 5> kFunctions = {"range", "namespace", "dict",
                                                        "raise_exception", "strftime_now"};

Value function_value(size_t index) {
  Value value = Value::of(Kind::function);
  value.integer = static_cast<int64_t>(index);
  return value;
}

// Where the characters of valid UTF-8 start, and the end.
std::vector<size_t> character_starts(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size(); at += utf8_size(text, at)) {
    starts.push_back(at);
  }
  starts.push_back(text.size());
  return starts;
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

void Interpreter::Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : variables) {
    if (key == name) {
      old = value;
      return;
    }
  }
  variables.emplace_back(name, value);
}

const Value* Interpreter::Scope::find(std::string_view name, size_t* seen) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    if (seen != nullptr) {
      *seen += scope->variables.size();
    }
    for (const auto& [key, value] : scope->variables) {
      if (key == name) {
        return &value;
      }
    }
  }
  return nullptr;
}

std::string Interpreter::run() {
  std::string out;
  body(template_.body, globals_, out);
  return out;
}

void Interpreter::write(std::string& out, std::string_view text) {
  if (out.size() + text.size() > max_output_) {
    heap_.fail(fmt::format("its text is longer than the limit ({} bytes)", max_output_));
  } else if (heap_.charge(text.size())) {
    out += text;
  }
}

Interpreter::Flow Interpreter::body(const Body& nodes, Scope& scope, std::string& out) {
  for (const Node* one : nodes) {
    if (!heap_.step()) {
      break;
    }
    const Flow flow = node(*one, scope, out);
    if (heap_.failed()) {
      break;
    }
    if (flow != Flow::go_on) {
      return flow;
    }
  }
  return Flow::go_on;
}

Interpreter::Flow Interpreter::node(const Node& node, Scope& scope, std::string& out) {
  if (++depth_ > kMaxDepth) {
    heap_.fail("it nests too deeply");
  }
  Flow flow = Flow::go_on;
  switch (heap_.failed() ? Tag::text : node.tag) {
    case Tag::text: write(out, node.text); break;
    case Tag::output: write(out, heap_.str(eval(*node.expr, scope))); break;
    case Tag::for_: flow = for_loop(node, scope, out); break;
    case Tag::if_:
      for (const Branch& branch : node.branches) {
        if (branch.condition == nullptr || heap_.truth(eval(*branch.condition, scope))) {
          flow = heap_.failed() ? flow : body(branch.body, scope, out);
          break;
        }
      }
      break;
    case Tag::set:
    case Tag::set_block: set_statement(node, scope); break;
    case Tag::macro: {
      Value value = Value::of(Kind::macro);
      value.macro = &node;
      scope.set(node.text, value);
      break;
    }
    case Tag::break_: flow = Flow::break_; break;
    case Tag::continue_: flow = Flow::continue_; break;
  }
  --depth_;
  if (heap_.failed() && error_line_ == 0) {  // the innermost tag comes first
    error_line_ = line_of(template_.source, node.position);
  }
  return flow;
}

Interpreter::Flow Interpreter::for_loop(const Node& node, Scope& scope, std::string& out) {
  const List* items = heap_.elements(eval(*node.expr, scope));
  if (items == nullptr || heap_.failed()) {
    return Flow::go_on;
  }
  if (node.condition != nullptr) {
    List kept;
    for (const Value& item : *items) {
      Scope inner{{}, &scope};
      assign(node.names, item, inner);
      if (!heap_.step() || (heap_.truth(eval(*node.condition, inner)) && !heap_.failed())) {
        kept.push_back(item);
      }
    }
    items = heap_.list(std::move(kept)).list;
  }
  Loop* loop = heap_.loop(items);
  if (const Value* outer = scope.find("loop"); outer != nullptr && outer->is(Kind::loop)) {
    loop->depth = outer->loop->depth + 1;
  }
  for (; loop->index < items->size() && heap_.step(); ++loop->index) {
    Scope inner{{}, &scope};
    Value value = Value::of(Kind::loop);
    value.loop = loop;
    inner.set("loop", value);
    assign(node.names, (*items)[loop->index], inner);
    if (body(node.body, inner, out) == Flow::break_) {
      break;
    }
  }
  return items->empty() ? body(node.otherwise, scope, out) : Flow::go_on;
}

void Interpreter::assign(const std::vector<std::string>& names, const Value& value, Scope& scope) {
  heap_.work(scope.variables.size() * sizeof(Value));
  if (names.size() == 1) {
    return scope.set(names[0], value);
  }
  const List* items = heap_.elements(value);
  if (items == nullptr || items->size() != names.size()) {
    return heap_.fail(fmt::format("{} values are wanted, but there are {}", names.size(),
                                  items == nullptr ? 0 : items->size()));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    scope.set(names[i], (*items)[i]);
  }
}

void Interpreter::set_statement(const Node& node, Scope& scope) {
  Value value;
  if (node.tag == Tag::set_block) {
    std::string text;
    body(node.body, scope, text);
    value = heap_.string(std::move(text));
  } else {
    value = eval(*node.expr, scope);
  }
  if (heap_.failed()) {
    return;
  }
  if (node.attribute.empty()) {
    return assign(node.names, value, scope);
  }
  const Value* target = scope.find(node.text);
  if (target == nullptr || !target->is(Kind::space)) {
    return heap_.fail(fmt::format("({}) is no namespace", node.text));
  }
  for (auto& [key, old] : target->dict->items) {
    if (*key.string == node.attribute) {
      old = value;
      return;
    }
  }
  target->dict->items.emplace_back(heap_.string(node.attribute), value);
}

Value Interpreter::eval(const Expr& expr, Scope& scope) {
  if (!heap_.step()) {
    return {};
  }
  if (++depth_ > kMaxDepth) {
    heap_.fail("it nests too deeply");
  }
  const Value value = heap_.failed() ? Value() : eval_inner(expr, scope);
  --depth_;
  return value;
}

Value Interpreter::eval_inner(const Expr& expr, Scope& scope) {
  const auto child = [&](size_t i) { return eval(*expr.children[i], scope); };
  switch (expr.op) {
    case Op::none: return Value::none();
    case Op::boolean: return Value::of(expr.integer != 0);
    case Op::integer: return Value::of(expr.integer);
    case Op::real: return Value::of(expr.real);
    case Op::string: {
      Value value = Value::of(Kind::string);
      value.string = &expr.text;
      return value;
    }
    case Op::name: return name(expr, scope);
    case Op::list: {
      List items;
      for (size_t i = 0; i < expr.children.size(); ++i) {
        items.push_back(child(i));
      }
      return heap_.list(std::move(items));
    }
    case Op::dict: {
      Dict made;
      for (size_t i = 0; i + 1 < expr.children.size(); i += 2) {
        const Value key = child(i);
        made.items.emplace_back(key, child(i + 1));
      }
      return heap_.dict(std::move(made));
    }
    case Op::attribute: return attribute(child(0), expr.text);
    case Op::subscript: {
      const Value base = child(0);
      return subscript(base, child(1));
    }
    case Op::slice: return slice(expr, scope);
    case Op::call: return call(expr, scope);
    case Op::filter: {
      const Value input = child(0);
      return filter(expr.text, input, arguments(expr, 1, scope));
    }
    case Op::test: {
      const Value input = child(0);
      return Value::of(test(expr.text, input, arguments(expr, 1, scope)));
    }
    case Op::not_: return Value::of(!heap_.truth(child(0)));
    case Op::and_: {
      const Value left = child(0);
      return heap_.truth(left) ? child(1) : left;
    }
    case Op::or_: {
      const Value left = child(0);
      return heap_.truth(left) ? left : child(1);
    }
    case Op::if_else:
      if (heap_.truth(child(1))) {
        return child(0);
      }
      return expr.children[2] == nullptr ? heap_.undefined("the value of an if without else")
                                         : child(2);
    case Op::negative:
    case Op::positive: {
      const Value value = child(0);
      return expr.op == Op::negative ? arithmetic(Op::subtract, Value::of(int64_t{0}), value)
                                     : arithmetic(Op::add, Value::of(int64_t{0}), value);
    }
    default: return binary(expr, scope);
  }
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

Value Interpreter::attribute(const Value& base, std::string_view name) {
  heap_.work(base.is_mapping() ? base : Value());
  if (base.is_mapping()) {
    const Value* found = heap_.find(*base.dict, name);
    return found != nullptr ? *found : heap_.undefined(name);
  }
  if (base.is(Kind::undefined)) {
    return fail(fmt::format("({}) is undefined and has no member ({})",
                            base.string != nullptr ? base.text() : "value", name));
  }
  if (!base.is(Kind::loop)) {
    return heap_.undefined(name);
  }
  const Loop& loop = *base.loop;
  const auto count = static_cast<int64_t>(loop.items->size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value::of(index + 1);
  if (name == "index0") return Value::of(index);
  if (name == "first") return Value::of(index == 0);
  if (name == "last") return Value::of(index + 1 == count);
  if (name == "length") return Value::of(count);
  if (name == "revindex") return Value::of(count - index);
  if (name == "revindex0") return Value::of(count - index - 1);
  if (name == "depth") return Value::of(static_cast<int64_t>(loop.depth));
  if (name == "depth0") return Value::of(static_cast<int64_t>(loop.depth) - 1);
  if (name == "previtem" && index > 0) return (*loop.items)[loop.index - 1];
  if (name == "nextitem" && index + 1 < count) return (*loop.items)[loop.index + 1];
  return heap_.undefined(name);
}

Value Interpreter::subscript(const Value& base, const Value& index) {
  if (!heap_.work(base.is(Kind::list) ? Value() : base)) {
    return {};
  }
  if (base.is_mapping()) {
    for (const auto& [key, value] : base.dict->items) {
      if (heap_.equal(key, index)) {
        return value;
      }
    }
    return heap_.undefined(index.is(Kind::string) ? index.text() : "an element");
  }
  if (base.is(Kind::undefined) || (index.is(Kind::string) && !base.is(Kind::string))) {
    return attribute(base, index.is(Kind::string) ? index.text() : "an element");
  }
  if ((base.is(Kind::list) || base.is(Kind::string)) && index.is_integer()) {
    const bool is_list = base.is(Kind::list);
    const auto count =
        static_cast<int64_t>(is_list ? base.list->size() : character_count(base.text()));
    const int64_t at = index.integer < 0 ? index.integer + count : index.integer;
    if (at >= 0 && at < count && is_list) {
      return (*base.list)[static_cast<size_t>(at)];
    }
    if (at >= 0 && at < count) {
      size_t start = 0;
      for (int64_t i = 0; i < at; ++i) {
        start += utf8_size(base.text(), start);
      }
      return heap_.string(base.string->substr(start, utf8_size(base.text(), start)));
    }
  }
  return heap_.undefined("an element");
}

Value Interpreter::slice(const Expr& expr, Scope& scope) {
  const Value base = eval(*expr.children[0], scope);
  if (!base.is(Kind::list) && !base.is(Kind::string)) {
    return fail(fmt::format("{} has no slices", kind_name(base)));
  }
  const auto bound = [&](size_t i, int64_t fallback) {
    const Value value =
        expr.children[i] == nullptr ? Value::none() : eval(*expr.children[i], scope);
    if (!value.is_integer() && !value.is(Kind::none)) {
      heap_.fail(fmt::format("a slice has {} as its bound", kind_name(value)));
    }
    return value.is_integer() ? value.integer : fallback;
  };
  const int64_t step = bound(3, 1);
  if (step == 0) {
    return fail("a slice has the step 0");
  }
  if (!heap_.work(base)) {
    return {};
  }
  const bool is_list = base.is(Kind::list);
  const std::vector<size_t> starts = is_list ? std::vector<size_t>() : character_starts(base.text());
  const auto count = static_cast<int64_t>(is_list ? base.list->size() : starts.size() - 1);
  const auto place = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp(at < 0 ? std::max(at, -count - 1) + count : at, low, high);
  };
  const bool up = step > 0;
  // Where a bound is left out, the end that lies in that direction.
  constexpr int64_t kLeftOut = INT64_MIN;
  const int64_t from = bound(1, kLeftOut), to = bound(2, kLeftOut);
  const int64_t low = up ? 0 : -1, high = up ? count : count - 1;
  int64_t at = from == kLeftOut ? (up ? low : high) : place(from, low, high);
  const int64_t end = to == kLeftOut ? (up ? high : low) : place(to, low, high);
  List kept;
  std::string text;
  while (up ? at < end : at > end) {
    const auto i = static_cast<size_t>(at);
    if (is_list) {
      kept.push_back((*base.list)[i]);
    } else {
      text.append(*base.string, starts[i], starts[i + 1] - starts[i]);
    }
    if (up ? step >= end - at : step <= end - at) {
      break;
    }
    at += step;
  }
  return is_list ? heap_.list(std::move(kept)) : heap_.string(std::move(text));
}

Value Interpreter::binary(const Expr& expr, Scope& scope) {
  const Value a = eval(*expr.children[0], scope);
  const Value b = eval(*expr.children[1], scope);
  if (!heap_.work(a) || !heap_.work(b)) {
    return {};
  }
  switch (expr.op) {
    case Op::concat: return heap_.string(heap_.str(a) + heap_.str(b));
    case Op::equal: return Value::of(heap_.equal(a, b));
    case Op::not_equal: return Value::of(!heap_.equal(a, b));
    case Op::less: return Value::of(heap_.compare(a, b) < 0);
    case Op::less_equal: return Value::of(heap_.compare(a, b) <= 0);
    case Op::greater: return Value::of(heap_.compare(a, b) > 0);
    case Op::greater_equal: return Value::of(heap_.compare(a, b) >= 0);
    case Op::in: return Value::of(heap_.contains(b, a));
    case Op::not_in: return Value::of(!heap_.contains(b, a));
    default: return arithmetic(expr.op, a, b);
  }
}

Value Interpreter::repeat(std::string_view text, int64_t count) {
  std::string out;
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  if (!text.empty() && times > max_output_ / text.size()) {
    return fail("a string is repeated too often");
  }
  for (size_t i = 0; i < times; ++i) {
    out += text;
  }
  return heap_.string(std::move(out));
}

Value Interpreter::arithmetic(Op op, const Value& a, const Value& b) {
  if (op == Op::add && a.is(Kind::string) && b.is(Kind::string)) {
    return heap_.string(*a.string + *b.string);
  }
  if (op == Op::add && a.is(Kind::list) && b.is(Kind::list)) {
    List both = *a.list;
    both.insert(both.end(), b.list->begin(), b.list->end());
    return heap_.list(std::move(both));
  }
  if (op == Op::multiply && a.is(Kind::string) && b.is_integer()) {
    return repeat(a.text(), b.integer);
  }
  if (op == Op::multiply && a.is_integer() && b.is(Kind::string)) {
    return repeat(b.text(), a.integer);
  }
  if (!a.is_number() || !b.is_number()) {
    const Value& wrong = a.is(Kind::undefined) || !b.is(Kind::undefined) ? a : b;
    if (wrong.is(Kind::undefined) && wrong.string != nullptr) {
      return fail(fmt::format("({}) is undefined", wrong.text()));
    }
    return fail(fmt::format("{} and {} cannot be combined", kind_name(a), kind_name(b)));
  }
  const bool division = op == Op::divide || op == Op::floor_divide || op == Op::modulo;
  if (division && b.number() == 0) {
    return fail("a number is divided by 0");
  }
  if (op == Op::divide) {
    return Value::of(a.number() / b.number());
  }
  if (a.is_integer() && b.is_integer()) {
    return integers(op, a.integer, b.integer);
  }
  const double x = a.number(), y = b.number();
  switch (op) {
    case Op::add: return Value::of(x + y);
    case Op::subtract: return Value::of(x - y);
    case Op::multiply: return Value::of(x * y);
    case Op::floor_divide: return Value::of(std::floor(x / y));
    case Op::modulo: return Value::of(x - y * std::floor(x / y));
    default: return Value::of(std::pow(x, y));
  }
}

Value Interpreter::integers(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Op::add: overflow = __builtin_add_overflow(a, b, &result); break;
    case Op::subtract: overflow = __builtin_sub_overflow(a, b, &result); break;
    case Op::multiply: overflow = __builtin_mul_overflow(a, b, &result); break;
    case Op::floor_divide:
    case Op::modulo: {
      if (b == -1) {  // the one quotient that can be too large
        overflow = op == Op::floor_divide && __builtin_sub_overflow(int64_t{0}, a, &result);
        break;
      }
      const int64_t rest = a % b;
      const bool down = rest != 0 && (rest < 0) != (b < 0);
      result = op == Op::modulo ? rest + (down ? b : 0) : a / b - (down ? 1 : 0);
      break;
    }
    default:
      if (b < 0) {
        return Value::of(std::pow(static_cast<double>(a), static_cast<double>(b)));
      }
      result = 1;
      for (int64_t i = 0; i < b && !overflow && result != 0 && a != 1; ++i) {
        overflow = !heap_.step() || __builtin_mul_overflow(result, a, &result);
      }
  }
  return overflow ? fail("a number is out of range") : Value::of(result);
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
      i += i + 1 < text.size() && text[i + 1] == '-' ? 1 : 0;
      constexpr std::string_view kKnown = "aAbBcdDeFHIjmMnpRSTuUVwWxXyYzZ%";
      if (i + 1 >= text.size() || kKnown.find(text[i + 1]) == std::string_view::npos) {
        return fail(fmt::format("strftime_now() has the unknown format ({})", text));
      }
    }
    const std::tm now = fmt::gmtime(std::time(nullptr));
    char buffer[4096];
    return heap_.string(std::string(buffer, std::strftime(buffer, sizeof buffer, text.c_str(), &now)));
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
