// SPDX-License-Identifier: BSD-3-Clause
// What expressions are worth, but for calls.
#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

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
    case Op::none:
      return Value::none();
    case Op::boolean:
      return Value::of(expr.integer != 0);
    case Op::integer:
      return Value::of(expr.integer);
    case Op::real:
      return Value::of(expr.real);
    case Op::string: {
      Value value = Value::of(Kind::string);
      value.string = &expr.text;
      return value;
    }
    case Op::name:
      return name(expr, scope);
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
    case Op::attribute:
      return attribute(child(0), expr.text);
    case Op::subscript: {
      const Value base = child(0);
      return subscript(base, child(1));
    }
    case Op::slice:
      return slice(expr, scope);
    case Op::call:
      return call(expr, scope);
    case Op::filter: {
      const Value input = child(0);
      return filter(expr.text, input, arguments(expr, 1, scope));
    }
    case Op::test: {
      const Value input = child(0);
      return Value::of(test(expr.text, input, arguments(expr, 1, scope)));
    }
    case Op::not_:
      return Value::of(!heap_.truth(child(0)));
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
    default:
      return binary(expr, scope);
  }
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
  if (name == "index") {
    return Value::of(index + 1);
  }
  if (name == "index0") {
    return Value::of(index);
  }
  if (name == "first") {
    return Value::of(index == 0);
  }
  if (name == "last") {
    return Value::of(index + 1 == count);
  }
  if (name == "length") {
    return Value::of(count);
  }
  if (name == "revindex") {
    return Value::of(count - index);
  }
  if (name == "revindex0") {
    return Value::of(count - index - 1);
  }
  if (name == "depth") {
    return Value::of(static_cast<int64_t>(loop.depth));
  }
  if (name == "depth0") {
    return Value::of(static_cast<int64_t>(loop.depth) - 1);
  }
  if (name == "previtem" && index > 0) {
    return (*loop.items)[loop.index - 1];
  }
  if (name == "nextitem" && index + 1 < count) {
    return (*loop.items)[loop.index + 1];
  }
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
  const std::vector<size_t> starts =
      is_list ? std::vector<size_t>() : character_starts(base.text());
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
    case Op::concat:
      return heap_.string(heap_.str(a) + heap_.str(b));
    case Op::equal:
      return Value::of(heap_.equal(a, b));
    case Op::not_equal:
      return Value::of(!heap_.equal(a, b));
    case Op::less:
      return Value::of(heap_.compare(a, b) < 0);
    case Op::less_equal:
      return Value::of(heap_.compare(a, b) <= 0);
    case Op::greater:
      return Value::of(heap_.compare(a, b) > 0);
    case Op::greater_equal:
      return Value::of(heap_.compare(a, b) >= 0);
    case Op::in:
      return Value::of(heap_.contains(b, a));
    case Op::not_in:
      return Value::of(!heap_.contains(b, a));
    default:
      return arithmetic(expr.op, a, b);
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
    case Op::add:
      return Value::of(x + y);
    case Op::subtract:
      return Value::of(x - y);
    case Op::multiply:
      return Value::of(x * y);
    case Op::floor_divide:
      return Value::of(std::floor(x / y));
    case Op::modulo:
      return Value::of(x - y * std::floor(x / y));
    default:
      return Value::of(std::pow(x, y));
  }
}

Value Interpreter::integers(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Op::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Op::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
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

}  // namespace ptero::text::jinja
