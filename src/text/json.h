// SPDX-License-Identifier: BSD-3-Clause
// JSON of strangers as values, with bounds on depth and size; object members keep the order of the
// file. Internal to src/text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace ptero::text {

class JsonValue;
using JsonArray = std::vector<JsonValue>;
using JsonMember = std::pair<std::string, JsonValue>;
using JsonObject = std::vector<JsonMember>;

class JsonValue {
 public:
  JsonValue() = default;
  template <typename T>
  explicit JsonValue(T value) : state_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(state_); }
  const bool* boolean() const { return std::get_if<bool>(&state_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&state_); }
  const std::string* string() const { return std::get_if<std::string>(&state_); }
  const JsonArray* array() const { return std::get_if<JsonArray>(&state_); }
  const JsonObject* object() const { return std::get_if<JsonObject>(&state_); }
  JsonArray* array() { return std::get_if<JsonArray>(&state_); }
  JsonObject* object() { return std::get_if<JsonObject>(&state_); }
  // Integers too.
  bool number(double& out) const;
  std::string_view kind() const;

  // The last member of this name, as in other readers; null when there is none or this is no
  // object.
  const JsonValue* find(std::string_view name) const;

 private:
  // Integers beyond int64 are doubles.
  std::variant<std::monostate, bool, int64_t, double, std::string, JsonArray, JsonObject> state_;
};

// `what` is the subject of the sentence when it fails, such as "Tokenizer file".
Result<JsonValue> parse_json(std::string_view bytes, std::string_view what);

// Members of an object. A missing or null member gives `fallback`; another type is an error that
// names `where`.
Result<bool> get_bool(const JsonValue& object, std::string_view name, bool fallback,
                      std::string_view where);
Result<int64_t> get_int(const JsonValue& object, std::string_view name, int64_t fallback,
                        std::string_view where);
Result<std::string> get_string(const JsonValue& object, std::string_view name,
                               std::string_view fallback, std::string_view where);
// Required ones.
Result<std::string> need_string(const JsonValue& object, std::string_view name,
                                std::string_view where);
Result<const JsonArray*> need_array(const JsonValue& object, std::string_view name,
                                    std::string_view where);

}  // namespace ptero::text
