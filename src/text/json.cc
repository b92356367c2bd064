// SPDX-License-Identifier: BSD-3-Clause
#include "text/json.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

namespace ptero::text {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxValues = 16'000'000;

// Builds values from the events of the parser, which itself neither recurses nor, used this way,
// throws.
class Builder {
 public:
  using Json = nlohmann::json;

  bool null() { return add(JsonValue()); }
  bool boolean(bool value) { return add(JsonValue(value)); }
  bool number_integer(Json::number_integer_t value) { return add(JsonValue(int64_t{value})); }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return add(JsonValue(static_cast<double>(value)));
    }
    return add(JsonValue(static_cast<int64_t>(value)));
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return add(JsonValue(double{value}));
  }
  bool string(std::string& value) { return add(JsonValue(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(JsonValue(JsonObject())); }
  bool start_array(size_t) { return open(JsonValue(JsonArray())); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    position_ = position;
    return false;
  }

  JsonValue take() { return std::move(root_); }
  const std::string& limit() const { return limit_; }
  size_t position() const { return position_; }

 private:
  bool add(JsonValue value) { return place(std::move(value)) != nullptr; }

  bool open(JsonValue value) {
    if (stack_.size() == kMaxDepth) {
      limit_ = fmt::format("nests deeper than the limit ({})", kMaxDepth);
      return false;
    }
    JsonValue* placed = place(std::move(value));
    if (placed == nullptr) {
      return false;
    }
    stack_.push_back(placed);
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  // A container grows only while it is the innermost open one, so pointers in the stack stay good.
  JsonValue* place(JsonValue value) {
    if (++values_ > kMaxValues) {
      limit_ = fmt::format("holds more values than the limit ({})", kMaxValues);
      return nullptr;
    }
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (JsonArray* array = stack_.back()->array()) {
      return &array->emplace_back(std::move(value));
    }
    JsonObject& object = *stack_.back()->object();
    return &object.emplace_back(std::move(key_), std::move(value)).second;
  }

  JsonValue root_;
  std::vector<JsonValue*> stack_;
  std::string key_;
  std::string limit_;
  size_t values_ = 0;
  size_t position_ = 0;
};

Error wrong_type(const JsonValue& found, std::string_view name, std::string_view expected,
                 std::string_view where) {
  return make_error(ErrorCode::invalid_program, "Member ({}) of {} is {} instead of {}.", name,
                    where, found.kind(), expected);
}

Error missing(std::string_view name, std::string_view where) {
  return make_error(ErrorCode::invalid_program, "Member ({}) of {} is missing.", name, where);
}

}  // namespace

bool JsonValue::number(double& out) const {
  if (const double* value = std::get_if<double>(&state_)) {
    out = *value;
    return true;
  }
  if (const int64_t* value = integer()) {
    out = static_cast<double>(*value);
    return true;
  }
  return false;
}

std::string_view JsonValue::kind() const {
  constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "a number",
                                         "a string", "an array",  "an object"};
  return kNames[state_.index()];
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const JsonObject* members = object();
  if (members == nullptr) {
    return nullptr;
  }
  for (auto member = members->rbegin(); member != members->rend(); ++member) {
    if (member->first == name) {
      return &member->second;
    }
  }
  return nullptr;
}

Result<JsonValue> parse_json(std::string_view bytes, std::string_view what) {
  PTERO_REJECT_IF(bytes.size() > kMaxBytes, invalid_program,
                  "{} is larger ({} bytes) than the limit ({}).", what, bytes.size(), kMaxBytes);
  Builder builder;
  if (!nlohmann::json::sax_parse(bytes, &builder)) {
    if (!builder.limit().empty()) {
      return make_error(ErrorCode::invalid_program, "{} {}.", what, builder.limit());
    }
    return make_error(ErrorCode::invalid_program, "{} is not valid JSON at byte {} of {}.", what,
                      std::min(builder.position(), bytes.size()), bytes.size());
  }
  return builder.take();
}

Result<bool> get_bool(const JsonValue& object, std::string_view name, bool fallback,
                      std::string_view where) {
  const JsonValue* member = object.find(name);
  if (member == nullptr || member->is_null()) {
    return fallback;
  }
  if (const bool* value = member->boolean()) {
    return *value;
  }
  return wrong_type(*member, name, "a boolean", where);
}

Result<int64_t> get_int(const JsonValue& object, std::string_view name, int64_t fallback,
                        std::string_view where) {
  const JsonValue* member = object.find(name);
  if (member == nullptr || member->is_null()) {
    return fallback;
  }
  if (const int64_t* value = member->integer()) {
    return *value;
  }
  return wrong_type(*member, name, "an integer", where);
}

Result<std::string> get_string(const JsonValue& object, std::string_view name,
                               std::string_view fallback, std::string_view where) {
  const JsonValue* member = object.find(name);
  if (member == nullptr || member->is_null()) {
    return std::string(fallback);
  }
  if (const std::string* value = member->string()) {
    return *value;
  }
  return wrong_type(*member, name, "a string", where);
}

Result<std::string> need_string(const JsonValue& object, std::string_view name,
                                std::string_view where) {
  const JsonValue* member = object.find(name);
  if (member == nullptr) {
    return missing(name, where);
  }
  if (const std::string* value = member->string()) {
    return *value;
  }
  return wrong_type(*member, name, "a string", where);
}

Result<const JsonArray*> need_array(const JsonValue& object, std::string_view name,
                                    std::string_view where) {
  const JsonValue* member = object.find(name);
  if (member == nullptr) {
    return missing(name, where);
  }
  if (const JsonArray* value = member->array()) {
    return value;
  }
  return wrong_type(*member, name, "an array", where);
}

}  // namespace ptero::text
