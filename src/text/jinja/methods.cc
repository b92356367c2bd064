// SPDX-License-Identifier: BSD-3-Clause
// Methods of strings, mappings and lists.
#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/jinja/strings.h"
#include "text/utf8.h"

namespace ptero::text::jinja {

Value Interpreter::string_method(std::string_view text, std::string_view name,
                                 const Arguments& given, bool& known) {
  const Value* first = given.find(0, "sep");
  const Value* second = given.find(1, "maxsplit");
  const auto flag = [](bool value) { return Value::of(value); };
  const auto made = [this](std::string_view out) { return heap_.string(std::string(out)); };
  const auto any_of = [&](auto&& check) {
    const auto one = [&](const Value& value) {
      return value.is(Kind::string) && check(value.text());
    };
    return first != nullptr &&
           (first->is(Kind::list) ? std::any_of(first->list->begin(), first->list->end(), one)
                                  : one(*first));
  };
  if (name == "strip") {
    return made(strip(text, first, true, true));
  }
  if (name == "lstrip") {
    return made(strip(text, first, true, false));
  }
  if (name == "rstrip") {
    return made(strip(text, first, false, true));
  }
  if (name == "upper") {
    return made(upper_case(text));
  }
  if (name == "lower") {
    return made(lower_case(text));
  }
  if (name == "title") {
    return made(capitalized(text, true));
  }
  if (name == "capitalize") {
    return made(capitalized(text, false));
  }
  if (name == "split") {
    return heap_.list(split(text, first, integer_or(second, -1), heap_));
  }
  if (name == "splitlines") {
    List lines;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      lines.push_back(made(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return heap_.list(std::move(lines));
  }
  if (name == "startswith") {
    return flag(any_of([&](auto other) { return text.starts_with(other); }));
  }
  if (name == "endswith") {
    return flag(any_of([&](auto other) { return text.ends_with(other); }));
  }
  if (name == "isdigit") {
    return flag(!text.empty() &&
                std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }));
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
  if (name == "replace" && strings && given.values.size() >= 2 &&
      given.values[1].is(Kind::string)) {
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

}  // namespace ptero::text::jinja
