// SPDX-License-Identifier: BSD-3-Clause
// Values while a template runs. They are handles; what they point at lives in the run's heap until
// its end, within a budget of bytes. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/json.h"

namespace ptero::text::jinja {

struct Value;
using List = std::vector<Value>;
// In order of insertion; small, so that looking through it is fast enough.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
};

struct Loop;  // the variable "loop"

enum class Kind {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  dict,
  space,
  loop,
  function,
  macro
};

struct Value {
  Kind kind = Kind::undefined;
  union {
    int64_t integer = 0;  // also a boolean
    double real;
    const std::string* string;  // of an undefined value the name that it has; may be null
    const List* list;
    Dict* dict;  // only a namespace (kind space) changes
    const Loop* loop;
    const Node* macro;
  };

  static Value none() { return of(Kind::none); }
  static Value of(Kind kind) {
    Value value;
    value.kind = kind;
    return value;
  }
  static Value of(bool flag) {
    Value value = of(Kind::boolean);
    value.integer = flag ? 1 : 0;
    return value;
  }
  static Value of(int64_t number) {
    Value value = of(Kind::integer);
    value.integer = number;
    return value;
  }
  static Value of(double number) {
    Value value = of(Kind::real);
    value.real = number;
    return value;
  }

  bool is(Kind other) const { return kind == other; }
  bool is_integer() const { return kind == Kind::integer || kind == Kind::boolean; }
  bool is_number() const { return is_integer() || kind == Kind::real; }
  bool is_mapping() const { return kind == Kind::dict || kind == Kind::space; }
  double number() const { return kind == Kind::real ? real : static_cast<double>(integer); }
  std::string_view text() const { return *string; }
};

struct Loop {
  const List* items = nullptr;
  size_t index = 0;
  size_t depth = 1;
};

// What one run makes, and what stops it: once error() is set, results mean nothing.
class Heap {
 public:
  explicit Heap(size_t max_bytes) : left_(max_bytes) {}

  Value string(std::string text);
  Value list(List items);
  Value dict(Dict items, Kind kind = Kind::dict);
  Value undefined(std::string_view name);
  Loop* loop(const List* items);
  Value from_json(const JsonValue& json);

  // False, with an error, when the budget is spent.
  bool charge(size_t bytes);
  bool step();
  // Counts what looking through a value costs; a step alone may be about any amount of text.
  bool work(const Value& value);
  bool work(size_t bytes);
  void fail(std::string error) {
    if (error_.empty()) {
      error_ = std::move(error);
    }
  }
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

  // As Python's str(), repr() and json.dumps() (without escapes of what is not ASCII).
  std::string str(const Value& value);
  std::string repr(const Value& value);
  std::string json(const Value& value, int indent);

  bool truth(const Value& value);
  bool equal(const Value& a, const Value& b);
  // Below 0, 0, above 0; an error for values without an order.
  int compare(const Value& a, const Value& b);
  bool contains(const Value& haystack, const Value& needle);
  // Null when there is none.
  const Value* find(const Dict& dict, std::string_view key);
  // The elements: of a list, the keys of a mapping, the characters of a string, nothing of an
  // undefined value. Null, with an error, for others.
  const List* elements(const Value& value);

 private:
  static constexpr size_t kMaxLevel = 100;  // of lists in lists

  bool equal_inner(const Value& a, const Value& b);
  void append(std::string& out, const Value& value, bool python, int indent, size_t level);
  void append_container(std::string& out, const Value& value, bool python, int indent,
                        size_t level);

  std::deque<std::string> strings_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Loop> loops_;
  std::string error_;
  size_t left_;
  size_t steps_ = 0;
  size_t work_ = 0;
  size_t equal_level_ = 0;
};

std::string_view kind_name(const Value& value);
std::string real_text(double value);
size_t character_count(std::string_view text);

}  // namespace ptero::text::jinja
