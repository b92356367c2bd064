// SPDX-License-Identifier: BSD-3-Clause
// What stands behind "is".
#include "text/jinja/interpreter.h"
#include "text/utf8.h"

namespace ptero::text::jinja {

bool Interpreter::test(std::string_view name, const Value& input, const Arguments& given) {
  const Value* other = given.values.empty() ? nullptr : &given.values[0];
  if (!heap_.work(name == "in" && other != nullptr ? *other : Value()) || !heap_.step()) {
    return false;
  }
  if (name == "defined") {
    return !input.is(Kind::undefined);
  }
  if (name == "undefined") {
    return input.is(Kind::undefined);
  }
  if (name == "none") {
    return input.is(Kind::none);
  }
  if (name == "string") {
    return input.is(Kind::string);
  }
  if (name == "number") {
    return input.is_number();
  }
  if (name == "integer") {
    return input.is(Kind::integer);
  }
  if (name == "float") {
    return input.is(Kind::real);
  }
  if (name == "boolean") {
    return input.is(Kind::boolean);
  }
  if (name == "true") {
    return input.is(Kind::boolean) && input.integer != 0;
  }
  if (name == "false") {
    return input.is(Kind::boolean) && input.integer == 0;
  }
  if (name == "mapping") {
    return input.is(Kind::dict);
  }
  if (name == "sequence") {
    return input.is(Kind::list) || input.is(Kind::string) || input.is(Kind::dict) ||
           input.is(Kind::undefined);
  }
  if (name == "iterable") {
    return input.is(Kind::list) || input.is(Kind::string) || input.is(Kind::dict) ||
           input.is(Kind::undefined);
  }
  if (name == "callable") {
    return input.is(Kind::macro) || input.is(Kind::function);
  }
  if (name == "lower" || name == "upper") {
    const std::string text = heap_.str(input);
    return heap_.work(text.size()) &&
           text == (name == "lower" ? lower_case(text) : upper_case(text));
  }
  if (name == "odd" || name == "even") {
    const Value rest = arithmetic(Op::modulo, input, Value::of(int64_t{2}));
    return rest.number() == (name == "odd" ? 1 : 0);
  }
  if (other == nullptr) {
    heap_.fail(fmt::format("test ({}) is not supported", name));
    return false;
  }
  if (name == "divisibleby") {
    return arithmetic(Op::modulo, input, *other).number() == 0;
  }
  if (name == "equalto" || name == "eq") {
    return heap_.equal(input, *other);
  }
  if (name == "sameas") {
    return input.kind == other->kind && heap_.equal(input, *other);
  }
  if (name == "ne") {
    return !heap_.equal(input, *other);
  }
  if (name == "in") {
    return heap_.contains(*other, input);
  }
  if (name == "lt" || name == "lessthan") {
    return heap_.compare(input, *other) < 0;
  }
  if (name == "le") {
    return heap_.compare(input, *other) <= 0;
  }
  if (name == "gt" || name == "greaterthan") {
    return heap_.compare(input, *other) > 0;
  }
  if (name == "ge") {
    return heap_.compare(input, *other) >= 0;
  }
  heap_.fail(fmt::format("test ({}) is not supported", name));
  return false;
}

}  // namespace ptero::text::jinja
