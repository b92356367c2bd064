// SPDX-License-Identifier: BSD-3-Clause
// Filters, tests and methods of strings and mappings, as Jinja and Python have them.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/interpreter.h"
#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

std::string_view strip(std::string_view text, const Value* set, bool left, bool right) {
  const auto in_set = [&](std::string_view character) {
    return set == nullptr || !set->is(Kind::string)
               ? is_white_space(utf8_step(character).code_point) ||
                     (character[0] >= 0x1C && character[0] <= 0x1F)
               : set->text().find(character) != std::string_view::npos;
  };
  while (left && !text.empty() && in_set(text.substr(0, utf8_size(text, 0)))) {
    text.remove_prefix(utf8_size(text, 0));
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
      --start;
    }
    if (!in_set(text.substr(start))) {
      break;
    }
    text = text.substr(0, start);
  }
  return text;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t most, Heap& heap) {
  std::string out;
  size_t done = 0;
  while (most-- != 0 && !heap.failed()) {
    const size_t at = from.empty() ? done : text.find(from, done);
    if (at == std::string_view::npos) {
      break;
    }
    out.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
    if (from.empty()) {
      if (done == text.size()) {
        break;
      }
      const size_t size = utf8_size(text, done);
      out.append(text.substr(done, size));
      done += size;
    }
    heap.charge(to.size() + 1);
  }
  return out.append(text.substr(done));
}

// Each word starts with an upper case letter, or only the first of the text does.
std::string capitalized(std::string_view text, bool every_word) {
  std::string out;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_size(text, at);
    const std::string_view character = text.substr(at, size);
    out += inside ? lower_case(character) : upper_case(character);
    const uint32_t c = utf8_step(character).code_point;
    inside = !every_word || is_letter(c);
    at += size;
  }
  return out;
}

List split(std::string_view text, const Value* separator, int64_t most, Heap& heap) {
  List parts;
  if (separator != nullptr && separator->is(Kind::string) && !separator->string->empty()) {
    while (most-- != 0) {
      const size_t at = text.find(separator->text());
      if (at == std::string_view::npos) {
        break;
      }
      parts.push_back(heap.string(std::string(text.substr(0, at))));
      text.remove_prefix(at + separator->text().size());
    }
    parts.push_back(heap.string(std::string(text)));
    return parts;
  }
  text = strip(text, nullptr, true, false);
  while (!text.empty() && !heap.failed()) {
    size_t end = 0;
    while (end < text.size() && !is_white_space(utf8_step(text.substr(end)).code_point)) {
      end += utf8_size(text, end);
    }
    end = most-- == 0 ? text.size() : end;
    parts.push_back(heap.string(std::string(
        end == text.size() ? strip(text, nullptr, false, true) : text.substr(0, end))));
    text = strip(text.substr(end), nullptr, true, false);
  }
  return parts;
}

std::string indented(std::string_view text, std::string_view indent, bool first, bool blank) {
  std::string out;
  for (bool start = true; ; start = false) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (start ? first : blank || !line.empty()) {
      out += indent;
    }
    out += line;
    if (end == text.size()) {
      return out;
    }
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

int64_t integer_or(const Value* value, int64_t fallback) {
  return value != nullptr && value->is_integer() ? value->integer : fallback;
}

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

Value Interpreter::string_method(std::string_view text, std::string_view name,
                                 const Arguments& given, bool& known) {
  const Value* first = given.find(0, "sep");
  const Value* second = given.find(1, "maxsplit");
  const auto flag = [](bool value) { return Value::of(value); };
  const auto made = [this](std::string_view out) { return heap_.string(std::string(out)); };
  const auto any_of = [&](auto&& check) {
    const auto one = [&](const Value& value) { return value.is(Kind::string) && check(value.text()); };
    return first != nullptr && (first->is(Kind::list)
                                    ? std::any_of(first->list->begin(), first->list->end(), one)
                                    : one(*first));
  };
  if (name == "strip") return made(strip(text, first, true, true));
  if (name == "lstrip") return made(strip(text, first, true, false));
  if (name == "rstrip") return made(strip(text, first, false, true));
  if (name == "upper") return made(upper_case(text));
  if (name == "lower") return made(lower_case(text));
  if (name == "title") return made(capitalized(text, true));
  if (name == "capitalize") return made(capitalized(text, false));
  if (name == "split") return heap_.list(split(text, first, integer_or(second, -1), heap_));
  if (name == "splitlines") {
    List lines;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      lines.push_back(made(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return heap_.list(std::move(lines));
  }
  if (name == "startswith") return flag(any_of([&](auto other) { return text.starts_with(other); }));
  if (name == "endswith") return flag(any_of([&](auto other) { return text.ends_with(other); }));
  if (name == "isdigit") {
    return flag(!text.empty() && std::all_of(text.begin(), text.end(),
                                             [](char c) { return c >= '0' && c <= '9'; }));
  }
  const bool strings = first != nullptr && first->is(Kind::string);
  if (name == "removeprefix" && strings) {
    return made(text.starts_with(first->text()) ? text.substr(first->text().size()) : text);
  }
  if (name == "removesuffix" && strings) {
    const bool found = text.ends_with(first->text());
    return made(text.substr(0, text.size() - (found ? first->text().size() : 0)));
  }
  if (name == "find" && strings) {
    const size_t at = text.find(first->text());
    return Value::of(at == std::string_view::npos
                         ? int64_t{-1}
                         : static_cast<int64_t>(character_count(text.substr(0, at))));
  }
  if (name == "count" && strings && !first->string->empty()) {
    int64_t count = 0;
    for (size_t at = 0; (at = text.find(first->text(), at)) != std::string_view::npos; ++count) {
      at += first->text().size();
    }
    return Value::of(count);
  }
  if (name == "replace" && strings && given.values.size() >= 2 && given.values[1].is(Kind::string)) {
    return heap_.string(replace_all(text, first->text(), given.values[1].text(),
                                    integer_or(given.find(2, "count"), -1), heap_));
  }
  if (name == "join" && first != nullptr) {
    Arguments separator;
    separator.values.push_back(made(text));
    return filter("join", *first, separator);
  }
  known = false;
  return {};
}

Value Interpreter::method(const Value& base, std::string_view name, const Arguments& given,
                          bool& known) {
  known = true;
  if (base.is(Kind::string)) {
    return string_method(base.text(), name, given, known);
  }
  if (base.is_mapping() && (name == "items" || name == "keys" || name == "values")) {
    List made;
    for (const auto& [key, value] : base.dict->items) {
      made.push_back(name == "keys" ? key : name == "values" ? value : heap_.list({key, value}));
    }
    return heap_.list(std::move(made));
  }
  if (base.is_mapping() && name == "get" && !given.values.empty()) {
    const Value found = subscript(base, given.values[0]);
    const Value* fallback = given.find(1, "default");
    return !found.is(Kind::undefined) ? found : fallback != nullptr ? *fallback : Value::none();
  }
  if (base.is(Kind::loop) && name == "cycle" && !given.values.empty()) {
    return given.values[base.loop->index % given.values.size()];
  }
  if (base.is(Kind::list) && (name == "append" || name == "extend" || name == "insert" ||
                              name == "pop" || name == "remove")) {
    return fail(fmt::format("lists cannot be changed ({})", name));
  }
  if (base.is(Kind::list) && name == "count" && given.values.size() == 1) {
    return Value::of(static_cast<int64_t>(
        std::count_if(base.list->begin(), base.list->end(),
                      [&](const Value& item) { return heap_.equal(item, given.values[0]); })));
  }
  if (base.is(Kind::list) && name == "index" && given.values.size() == 1) {
    for (size_t i = 0; i < base.list->size(); ++i) {
      if (heap_.equal((*base.list)[i], given.values[0])) {
        return Value::of(static_cast<int64_t>(i));
      }
    }
    return fail("a list does not hold the value whose index is asked for");
  }
  known = false;
  return {};
}

Value Interpreter::filter(std::string_view name, const Value& input, const Arguments& given) {
  if (!heap_.work(input)) {
    return {};
  }
  const auto text = [&] { return heap_.str(input); };
  const auto made = [this](std::string_view out) { return heap_.string(std::string(out)); };
  if (name == "trim") return made(strip(text(), given.find(0, "chars"), true, true));
  if (name == "string") return heap_.string(text());
  if (name == "safe") return input;
  if (name == "upper") return heap_.string(upper_case(text()));
  if (name == "lower") return heap_.string(lower_case(text()));
  if (name == "title") return heap_.string(capitalized(text(), true));
  if (name == "capitalize") return heap_.string(capitalized(text(), false));
  if (name == "escape" || name == "e") return heap_.string(escaped(text()));
  if (name == "int") return to_integer(input, given.find(0, "default"));
  if (name == "float") return to_real(input, given.find(0, "default"));
  if (name == "abs" && input.is_number()) {
    return input.number() < 0 ? arithmetic(Op::subtract, Value::of(int64_t{0}), input) : input;
  }
  if (name == "round" && input.is_number()) {
    const double scale = std::pow(10.0, static_cast<double>(integer_or(given.find(0, "precision"), 0)));
    return Value::of(std::nearbyint(input.number() * scale) / scale);
  }
  if (name == "default" || name == "d") {
    const Value* also = given.find(1, "boolean");
    const bool missing = input.is(Kind::undefined) ||
                         (also != nullptr && heap_.truth(*also) && !heap_.truth(input));
    const Value* value = given.find(0, "default_value");
    return !missing ? input : value != nullptr ? *value : made("");
  }
  if (name == "tojson") {
    const Value* indent = given.find(0, "indent");
    return heap_.string(heap_.json(
        input, static_cast<int>(std::clamp<int64_t>(integer_or(indent, -1), -1, 16))));
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
            : std::string(static_cast<size_t>(std::clamp<int64_t>(integer_or(width, 4), 0, 64)), ' ');
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
    base = base.is_mapping() || base.is(Kind::loop) ? attribute(base, dotted.substr(0, dot)) : Value();
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
  const Value* attribute = mapping ? given.find(SIZE_MAX, "attribute")
                                   : by_attribute ? given.find(0, "") : nullptr;
  const size_t skip = by_attribute ? 1 : 0;
  const Value* what = given.values.size() > skip ? &given.values[skip] : nullptr;
  if ((by_attribute && attribute == nullptr) || (attribute != nullptr && !attribute->is(Kind::string)) ||
      (what != nullptr && !what->is(Kind::string)) || (mapping && attribute == nullptr && what == nullptr)) {
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
    for (const Value& key : *sorted(method(input, "keys", {}, known), {}).list) {
      keys.push_back(heap_.list({key, subscript(input, key)}));
    }
    return heap_.list(std::move(keys));
  }
  constexpr std::string_view kKnown[] = {"join",   "list", "first",  "last",       "length",
                                         "count",  "sort", "unique", "reverse",    "map",
                                         "select", "reject", "selectattr", "rejectattr", "min",
                                         "max",    "sum"};
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
  if (name == "list") return heap_.list(*items);
  if (name == "length" || name == "count") return Value::of(static_cast<int64_t>(items->size()));
  if (name == "first") return items->empty() ? heap_.undefined("the first element") : items->front();
  if (name == "last") return items->empty() ? heap_.undefined("the last element") : items->back();
  if (name == "sort") return sorted(input, given);
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

bool Interpreter::test(std::string_view name, const Value& input, const Arguments& given) {
  const Value* other = given.values.empty() ? nullptr : &given.values[0];
  if (!heap_.work(name == "in" && other != nullptr ? *other : Value()) || !heap_.step()) {
    return false;
  }
  if (name == "defined") return !input.is(Kind::undefined);
  if (name == "undefined") return input.is(Kind::undefined);
  if (name == "none") return input.is(Kind::none);
  if (name == "string") return input.is(Kind::string);
  if (name == "number") return input.is_number();
  if (name == "integer") return input.is(Kind::integer);
  if (name == "float") return input.is(Kind::real);
  if (name == "boolean") return input.is(Kind::boolean);
  if (name == "true") return input.is(Kind::boolean) && input.integer != 0;
  if (name == "false") return input.is(Kind::boolean) && input.integer == 0;
  if (name == "mapping") return input.is(Kind::dict);
  if (name == "sequence") {
    return input.is(Kind::list) || input.is(Kind::string) || input.is(Kind::dict) ||
           input.is(Kind::undefined);
  }
  if (name == "iterable") {
    return input.is(Kind::list) || input.is(Kind::string) || input.is(Kind::dict) ||
           input.is(Kind::undefined);
  }
  if (name == "callable") return input.is(Kind::macro) || input.is(Kind::function);
  if (name == "lower" || name == "upper") {
    const std::string text = heap_.str(input);
    return heap_.work(text.size()) && text == (name == "lower" ? lower_case(text) : upper_case(text));
  }
  if (name == "odd" || name == "even") {
    const Value rest = arithmetic(Op::modulo, input, Value::of(int64_t{2}));
    return rest.number() == (name == "odd" ? 1 : 0);
  }
  if (other == nullptr) {
    heap_.fail(fmt::format("test ({}) is not supported", name));
    return false;
  }
  if (name == "divisibleby") return arithmetic(Op::modulo, input, *other).number() == 0;
  if (name == "equalto" || name == "eq") return heap_.equal(input, *other);
  if (name == "sameas") return input.kind == other->kind && heap_.equal(input, *other);
  if (name == "ne") return !heap_.equal(input, *other);
  if (name == "in") return heap_.contains(*other, input);
  if (name == "lt" || name == "lessthan") return heap_.compare(input, *other) < 0;
  if (name == "le") return heap_.compare(input, *other) <= 0;
  if (name == "gt" || name == "greaterthan") return heap_.compare(input, *other) > 0;
  if (name == "ge") return heap_.compare(input, *other) >= 0;
  heap_.fail(fmt::format("test ({}) is not supported", name));
  return false;
}

}  // namespace ptero::text::jinja
