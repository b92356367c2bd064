// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/jinja/strings.h"
#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

template <typename Number>
bool parse(std::string_view text, Number& out) {
  text = strip(text, nullptr, true, true);
  text.remove_prefix(text.starts_with('+') ? 1 : 0);
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

Value to_integer(const Value& input, const Value* fallback) {
  int64_t integer = 0;
  double real = 0;
  if (input.is_integer()) {
    return Value::of(input.integer);
  }
  if (input.is(Kind::string) && parse(input.text(), integer)) {
    return Value::of(integer);
  }
  if (input.is(Kind::real) || (input.is(Kind::string) && parse(input.text(), real))) {
    real = input.is(Kind::real) ? input.real : real;
    if (std::abs(real) < 9e18) {
      return Value::of(static_cast<int64_t>(real));
    }
  }
  return fallback != nullptr ? *fallback : Value::of(int64_t{0});
}

Value to_real(const Value& input, const Value* fallback) {
  double real = 0;
  if (input.is_number()) {
    return Value::of(input.number());
  }
  if (input.is(Kind::string) && parse(input.text(), real)) {
    return Value::of(real);
  }
  return fallback != nullptr ? *fallback : Value::of(0.0);
}

}  // namespace

Value Interpreter::filter(std::string_view name, const Value& input, const Arguments& given) {
  if (!heap_.work(input)) {
    return {};
  }
  const auto text = [&] { return heap_.str(input); };
  const auto made = [this](std::string_view out) { return heap_.string(std::string(out)); };
  if (name == "trim") {
    return made(strip(text(), given.find(0, "chars"), true, true));
  }
  if (name == "string") {
    return heap_.string(text());
  }
  if (name == "safe") {
    return input;
  }
  if (name == "upper") {
    return heap_.string(upper_case(text()));
  }
  if (name == "lower") {
    return heap_.string(lower_case(text()));
  }
  if (name == "title") {
    return heap_.string(capitalized(text(), true));
  }
  if (name == "capitalize") {
    return heap_.string(capitalized(text(), false));
  }
  if (name == "escape" || name == "e") {
    return heap_.string(escaped(text()));
  }
  if (name == "int") {
    return to_integer(input, given.find(0, "default"));
  }
  if (name == "float") {
    return to_real(input, given.find(0, "default"));
  }
  if (name == "abs" && input.is_number()) {
    return input.number() < 0 ? arithmetic(Op::subtract, Value::of(int64_t{0}), input) : input;
  }
  if (name == "round" && input.is_number()) {
    const double scale =
        std::pow(10.0, static_cast<double>(integer_or(given.find(0, "precision"), 0)));
    return Value::of(std::nearbyint(input.number() * scale) / scale);
  }
  if (name == "default" || name == "d") {
    const Value* also = given.find(1, "boolean");
    const bool missing =
        input.is(Kind::undefined) || (also != nullptr && heap_.truth(*also) && !heap_.truth(input));
    const Value* value = given.find(0, "default_value");
    return !missing ? input : value != nullptr ? *value : made("");
  }
  if (name == "tojson") {
    const Value* indent = given.find(0, "indent");
    return heap_.string(
        heap_.json(input, static_cast<int>(std::clamp<int64_t>(integer_or(indent, -1), -1, 16))));
  }
  if (name == "replace" && given.values.size() >= 2) {
    return heap_.string(replace_all(text(), heap_.str(given.values[0]), heap_.str(given.values[1]),
                                    integer_or(given.find(2, "count"), -1), heap_));
  }
  if (name == "indent") {
    const Value* width = given.find(0, "width");
    const Value *first = given.find(1, "first"), *blank = given.find(2, "blank");
    const std::string indent =
        width != nullptr && width->is(Kind::string)
            ? *width->string
            : std::string(static_cast<size_t>(std::clamp<int64_t>(integer_or(width, 4), 0, 64)),
                          ' ');
    const std::string lines = text();
    const auto count = static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n')) + 1;
    if (!heap_.charge(count * indent.size())) {
      return {};
    }
    return heap_.string(indented(lines, indent, first != nullptr && heap_.truth(*first),
                                 blank != nullptr && heap_.truth(*blank)));
  }
  if (name == "length" || name == "count") {
    if (input.is(Kind::string)) {
      return Value::of(static_cast<int64_t>(character_count(input.text())));
    }
    if (input.is_mapping()) {
      return Value::of(static_cast<int64_t>(input.dict->items.size()));
    }
  }
  bool known = true;
  const Value result = list_filter(name, input, given, known);
  return known ? result : fail(fmt::format("filter ({}) is not supported", name));
}

// "a.b" of a value; an undefined value has undefined members here.
Value Interpreter::path(Value base, std::string_view dotted) {
  while (!dotted.empty()) {
    const size_t dot = std::min(dotted.find('.'), dotted.size());
    base =
        base.is_mapping() || base.is(Kind::loop) ? attribute(base, dotted.substr(0, dot)) : Value();
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
  }
  return base;
}

Value Interpreter::sorted(const Value& input, const Arguments& given) {
  const Value* reverse = given.find(0, "reverse");
  const Value* attribute = given.find(2, "attribute");
  const Value* exact = given.find(1, "case_sensitive");
  List items = *heap_.elements(input);
  const auto key = [&](const Value& item) {
    const Value found =
        attribute != nullptr && attribute->is(Kind::string) ? path(item, attribute->text()) : item;
    const bool fold = found.is(Kind::string) && (exact == nullptr || !heap_.truth(*exact));
    return fold ? heap_.string(lower_case(found.text())) : found;
  };
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items) {
    keyed.emplace_back(key(item), item);
  }
  // An order that is none would be undefined behaviour in std::sort.
  const bool numbers = std::all_of(keyed.begin(), keyed.end(), [](const auto& one) {
    return one.first.is_number() && !std::isnan(one.first.number());
  });
  const bool strings = std::all_of(keyed.begin(), keyed.end(),
                                   [](const auto& one) { return one.first.is(Kind::string); });
  if (!numbers && !strings) {
    return fail("values that are neither all numbers nor all strings are not sorted");
  }
  const bool down = reverse != nullptr && heap_.truth(*reverse);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return down ? heap_.compare(b.first, a.first) < 0 : heap_.compare(a.first, b.first) < 0;
  });
  for (size_t i = 0; i < items.size(); ++i) {
    items[i] = keyed[i].second;
  }
  return heap_.list(std::move(items));
}

// map, select, reject, selectattr, rejectattr.
Value Interpreter::selecting_filter(std::string_view name, const Value& input,
                                    const Arguments& given) {
  const bool mapping = name == "map";
  const bool by_attribute = name.ends_with("attr");
  const Value* attribute = mapping        ? given.find(SIZE_MAX, "attribute")
                           : by_attribute ? given.find(0, "")
                                          : nullptr;
  const size_t skip = by_attribute ? 1 : 0;
  const Value* what = given.values.size() > skip ? &given.values[skip] : nullptr;
  if ((by_attribute && attribute == nullptr) ||
      (attribute != nullptr && !attribute->is(Kind::string)) ||
      (what != nullptr && !what->is(Kind::string)) ||
      (mapping && attribute == nullptr && what == nullptr)) {
    return fail(fmt::format("filter ({}) has the wrong arguments", name));
  }
  Arguments rest;
  if (what != nullptr) {
    rest.values.assign(given.values.begin() + static_cast<ptrdiff_t>(skip) + 1, given.values.end());
  }
  const Value* fallback = given.find(SIZE_MAX, "default");
  List made;
  for (const Value& item : *heap_.elements(input)) {
    if (!heap_.step()) {
      break;
    }
    Value value = attribute == nullptr ? item : path(item, attribute->text());
    if (mapping) {
      if (attribute != nullptr && value.is(Kind::undefined) && fallback != nullptr) {
        value = *fallback;
      }
      made.push_back(attribute != nullptr ? value : filter(what->text(), item, rest));
    } else {
      const bool yes = what == nullptr ? heap_.truth(value) : test(what->text(), value, rest);
      if (yes == name.starts_with("select")) {
        made.push_back(item);
      }
    }
  }
  return heap_.list(std::move(made));
}

Value Interpreter::list_filter(std::string_view name, const Value& input, const Arguments& given,
                               bool& known) {
  if ((name == "items" || name == "dictsort") && input.is_mapping()) {
    const Value items = method(input, "items", {}, known);
    if (name == "items") {
      return items;
    }
    List keys;
    const Value names = sorted(method(input, "keys", {}, known), {});
    if (heap_.failed()) {
      return {};
    }
    for (const Value& key : *names.list) {
      keys.push_back(heap_.list({key, subscript(input, key)}));
    }
    return heap_.list(std::move(keys));
  }
  constexpr std::string_view kKnown[] = {
      "join", "list",   "first",  "last",       "length",     "count", "sort", "unique", "reverse",
      "map",  "select", "reject", "selectattr", "rejectattr", "min",   "max",  "sum"};
  known = std::find(std::begin(kKnown), std::end(kKnown), name) != std::end(kKnown);
  const List* items = known ? heap_.elements(input) : nullptr;
  if (items == nullptr) {
    return {};
  }
  if (name == "join") {
    const Value* separator = given.find(0, "d");
    const Value* attribute = given.find(1, "attribute");
    std::string out;
    for (size_t i = 0; i < items->size() && heap_.step(); ++i) {
      const Value& item = (*items)[i];
      out += i > 0 && separator != nullptr ? heap_.str(*separator) : "";
      out += heap_.str(attribute != nullptr && attribute->is(Kind::string)
                           ? path(item, attribute->text())
                           : item);
      heap_.charge(out.size() > max_output_ ? SIZE_MAX : 1);
    }
    return heap_.string(std::move(out));
  }
  if (name == "list") {
    return heap_.list(*items);
  }
  if (name == "length" || name == "count") {
    return Value::of(static_cast<int64_t>(items->size()));
  }
  if (name == "first") {
    return items->empty() ? heap_.undefined("the first element") : items->front();
  }
  if (name == "last") {
    return items->empty() ? heap_.undefined("the last element") : items->back();
  }
  if (name == "sort") {
    return sorted(input, given);
  }
  if (name == "reverse") {
    List made(items->rbegin(), items->rend());
    return input.is(Kind::string) ? filter("join", heap_.list(std::move(made)), {})
                                  : heap_.list(std::move(made));
  }
  if (name == "unique") {
    List made;
    for (const Value& item : *items) {
      if (std::none_of(made.begin(), made.end(),
                       [&](const Value& other) { return heap_.equal(other, item); })) {
        made.push_back(item);
      }
    }
    return heap_.list(std::move(made));
  }
  if (name == "min" || name == "max") {
    const Value* best = items->empty() ? nullptr : &items->front();
    for (const Value& item : *items) {
      const int order = heap_.compare(item, *best);
      best = (name == "min" ? order < 0 : order > 0) ? &item : best;
    }
    return best == nullptr ? heap_.undefined("the extreme of nothing") : *best;
  }
  if (name == "sum") {
    Value sum = Value::of(int64_t{0});
    for (const Value& item : *items) {
      sum = arithmetic(Op::add, sum, item);
    }
    return sum;
  }
  return selecting_filter(name, input, given);
}

}  // namespace ptero::text::jinja
