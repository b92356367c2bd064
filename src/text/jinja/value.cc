// SPDX-License-Identifier: BSD-3-Clause
#include "text/jinja/value.h"

#include <algorithm>

#include "text/utf8.h"

namespace ptero::text::jinja {
namespace {

constexpr size_t kMaxSteps = 5'000'000;
constexpr size_t kMaxWork = size_t{256} << 20;

}  // namespace

std::string_view kind_name(const Value& value) {
  constexpr std::string_view kNames[] = {"undefined",   "none",     "a boolean",  "an integer",
                                         "a float",     "a string", "a list",     "a mapping",
                                         "a namespace", "a loop",   "a function", "a macro"};
  return kNames[static_cast<size_t>(value.kind)];
}

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool Heap::charge(size_t bytes) {
  if (bytes > left_) {
    left_ = 0;
    fail("it takes more memory than the limit");
    return false;
  }
  left_ -= bytes;
  return !failed();
}

bool Heap::step() {
  if (++steps_ > kMaxSteps) {
    fail(fmt::format("it takes more steps than the limit ({})", kMaxSteps));
  }
  return !failed();
}

bool Heap::work(size_t bytes) {
  work_ += std::min(bytes, kMaxWork);
  if (work_ > kMaxWork) {
    fail("it takes more time than the limit");
  }
  return !failed();
}

bool Heap::work(const Value& value) {
  switch (value.kind) {
    case Kind::string:
      return work(value.string->size());
    case Kind::list:
      return work(value.list->size() * sizeof(Value));
    case Kind::dict:
    case Kind::space:
      return work(value.dict->items.size() * 2 * sizeof(Value));
    default:
      return !failed();
  }
}

Value Heap::string(std::string text) {
  Value value = Value::of(Kind::string);
  value.string = &strings_.emplace_back(charge(text.size() + sizeof text) ? std::move(text) : "");
  return value;
}

Value Heap::list(List items) {
  Value value = Value::of(Kind::list);
  value.list =
      &lists_.emplace_back(charge((items.size() + 2) * sizeof(Value)) ? std::move(items) : List());
  return value;
}

Value Heap::dict(Dict items, Kind kind) {
  Value value = Value::of(kind);
  charge((items.items.size() + 1) * 2 * sizeof(Value));
  value.dict = &dicts_.emplace_back(std::move(items));
  return value;
}

Value Heap::undefined(std::string_view name) {
  Value value = string(std::string(name));
  value.kind = Kind::undefined;
  return value;
}

Loop* Heap::loop(const List* items) {
  charge(sizeof(Loop));
  Loop& made = loops_.emplace_back();
  made.items = items;
  return &made;
}

// The depth of JSON is bounded by its reader.
Value Heap::from_json(const JsonValue& json) {
  if (const bool* flag = json.boolean()) {
    return Value::of(*flag);
  }
  if (const int64_t* integer = json.integer()) {
    return Value::of(*integer);
  }
  double number = 0;
  if (json.number(number)) {
    return Value::of(number);
  }
  if (const std::string* text = json.string()) {
    return string(*text);
  }
  if (const JsonArray* array = json.array()) {
    List items;
    for (const JsonValue& item : *array) {
      items.push_back(from_json(item));
    }
    return list(std::move(items));
  }
  if (const JsonObject* object = json.object()) {
    Dict made;
    for (const auto& [name, member] : *object) {
      made.items.emplace_back(string(name), from_json(member));
    }
    return dict(std::move(made));
  }
  return Value::none();
}

bool Heap::truth(const Value& value) {
  switch (value.kind) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer != 0;
    case Kind::real:
      return value.real != 0;
    case Kind::string:
      return !value.string->empty();
    case Kind::list:
      return !value.list->empty();
    case Kind::dict:
      return !value.dict->items.empty();
    case Kind::space:
    case Kind::loop:
    case Kind::function:
    case Kind::macro:
      return true;
  }
  return false;
}

bool Heap::equal(const Value& a, const Value& b) {
  if (equal_level_ > kMaxLevel) {
    fail("a value nests too deeply to be compared");
  }
  if (!step()) {
    return false;
  }
  ++equal_level_;
  const bool same = equal_inner(a, b);
  --equal_level_;
  return same;
}

bool Heap::equal_inner(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? a.integer == b.integer : a.number() == b.number();
  }
  if (a.kind != b.kind) {
    return false;
  }
  switch (a.kind) {
    case Kind::string:
      return work(a) && *a.string == *b.string;
    case Kind::list:
      return a.list == b.list ||
             std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(),
                        [this](const Value& x, const Value& y) { return equal(x, y); });
    case Kind::dict: {
      const auto& items = a.dict->items;
      return a.dict == b.dict ||
             (items.size() == b.dict->items.size() &&
              std::all_of(items.begin(), items.end(), [&](const auto& item) {
                const auto& others = b.dict->items;
                const auto other = std::find_if(others.begin(), others.end(), [&](const auto& one) {
                  return equal(one.first, item.first);
                });
                return other != others.end() && equal(other->second, item.second);
              }));
    }
    case Kind::space:
      return a.dict == b.dict;
    case Kind::loop:
      return a.loop == b.loop;
    case Kind::macro:
      return a.macro == b.macro;
    case Kind::function:
      return a.integer == b.integer;
    default:
      return true;  // undefined, none
  }
}

int Heap::compare(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) {
      return a.integer < b.integer ? -1 : a.integer > b.integer ? 1 : 0;
    }
    return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  }
  if (a.is(Kind::string) && b.is(Kind::string)) {
    return a.string->compare(*b.string);  // UTF-8 sorts as its characters do
  }
  fail(fmt::format("{} and {} have no order", kind_name(a), kind_name(b)));
  return 0;
}

const Value* Heap::find(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict.items) {
    if (name.is(Kind::string) && *name.string == key) {
      return &value;
    }
  }
  return nullptr;
}

bool Heap::contains(const Value& haystack, const Value& needle) {
  if (haystack.is(Kind::string)) {
    if (!needle.is(Kind::string)) {
      fail(fmt::format("{} cannot be searched for in a string", kind_name(needle)));
      return false;
    }
    return haystack.string->find(*needle.string) != std::string::npos;
  }
  if (haystack.is_mapping()) {
    const auto& items = haystack.dict->items;
    return std::any_of(items.begin(), items.end(),
                       [&](const auto& item) { return equal(item.first, needle); });
  }
  const List* items = elements(haystack);
  return items != nullptr && std::any_of(items->begin(), items->end(),
                                         [&](const Value& item) { return equal(item, needle); });
}

const List* Heap::elements(const Value& value) {
  static const List kNothing;
  switch (value.kind) {
    case Kind::list:
      return value.list;
    case Kind::undefined:
      return &kNothing;
    case Kind::dict: {
      List keys;
      for (const auto& item : value.dict->items) {
        keys.push_back(item.first);
      }
      return list(std::move(keys)).list;
    }
    case Kind::string: {
      List characters;
      const std::string_view text = value.text();
      for (size_t at = 0; at < text.size() && charge(sizeof(Value));) {
        const size_t size = utf8_size(text, at);
        characters.push_back(string(std::string(text.substr(at, size))));
        at += size;
      }
      return list(std::move(characters)).list;
    }
    default:
      fail(fmt::format("{} has no elements", kind_name(value)));
      return nullptr;
  }
}

}  // namespace ptero::text::jinja
