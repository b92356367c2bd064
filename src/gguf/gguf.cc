// SPDX-License-Identifier: BSD-3-Clause
#include "gguf/gguf.h"

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "gguf/input.h"

namespace ptero::gguf {
namespace {

constexpr std::array<std::string_view, 13> kValueNames = {
    "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
    "bool",  "string", "array",  "uint64", "int64",  "float64"};

struct NumberedLayout {
  TensorType type;
  BlockLayout layout;
};

constexpr NumberedLayout kLayouts[] = {
    {TensorType::f32, {"F32", 1, 4}},           {TensorType::f16, {"F16", 1, 2}},
    {TensorType::q4_0, {"Q4_0", 32, 18}},       {TensorType::q4_1, {"Q4_1", 32, 20}},
    {TensorType::q5_0, {"Q5_0", 32, 22}},       {TensorType::q5_1, {"Q5_1", 32, 24}},
    {TensorType::q8_0, {"Q8_0", 32, 34}},       {TensorType::q2_k, {"Q2_K", 256, 84}},
    {TensorType::q3_k, {"Q3_K", 256, 110}},     {TensorType::q4_k, {"Q4_K", 256, 144}},
    {TensorType::q5_k, {"Q5_K", 256, 176}},     {TensorType::q6_k, {"Q6_K", 256, 210}},
    {TensorType::q8_k, {"Q8_K", 256, 292}},     {TensorType::iq2_xxs, {"IQ2_XXS", 256, 66}},
    {TensorType::iq2_xs, {"IQ2_XS", 256, 74}},  {TensorType::iq3_xxs, {"IQ3_XXS", 256, 98}},
    {TensorType::iq1_s, {"IQ1_S", 256, 50}},    {TensorType::iq4_nl, {"IQ4_NL", 32, 18}},
    {TensorType::iq3_s, {"IQ3_S", 256, 110}},   {TensorType::iq2_s, {"IQ2_S", 256, 82}},
    {TensorType::iq4_xs, {"IQ4_XS", 256, 136}}, {TensorType::i8, {"I8", 1, 1}},
    {TensorType::i16, {"I16", 1, 2}},           {TensorType::i32, {"I32", 1, 4}},
    {TensorType::i64, {"I64", 1, 8}},           {TensorType::f64, {"F64", 1, 8}},
    {TensorType::iq1_m, {"IQ1_M", 256, 56}},    {TensorType::bf16, {"BF16", 1, 2}},
    {TensorType::tq1_0, {"TQ1_0", 256, 54}},    {TensorType::tq2_0, {"TQ2_0", 256, 66}},
    {TensorType::mxfp4, {"MXFP4", 32, 17}},
};

Error wrong_type(std::string_view key, const Value& value, std::string_view expected) {
  return make_error(ErrorCode::invalid_program, "The value of {} has the type {} instead of {}.",
                    key, name_of(value.type), expected);
}

template <typename T, typename Out>
Result<std::vector<Out>> elements_as(const Array& array) {
  std::vector<T> raw(static_cast<size_t>(array.count));
  PTERO_RETURN_IF_ERROR(array.bytes.read(0, std::as_writable_bytes(std::span(raw))));
  std::vector<Out> out;
  out.reserve(raw.size());
  for (const T item : raw) {
    if constexpr (std::is_integral_v<T>) {
      const std::optional<Out> fitting = checked_cast<Out>(item);
      PTERO_REJECT_IF(!fitting, invalid_program, "Element ({}) of an array exceeds the limit ({}).",
                      item, std::numeric_limits<Out>::max());
      out.push_back(*fitting);
    } else {
      out.push_back(item);
    }
  }
  return out;
}

}  // namespace

std::string_view name_of(ValueType type) {
  const auto number = static_cast<size_t>(type);
  return number < kValueNames.size() ? kValueNames[number] : std::string_view();
}

std::optional<uint32_t> value_size(ValueType type) {
  switch (type) {
    case ValueType::uint8:
    case ValueType::int8:
    case ValueType::boolean:
      return 1;
    case ValueType::uint16:
    case ValueType::int16:
      return 2;
    case ValueType::uint32:
    case ValueType::int32:
    case ValueType::float32:
      return 4;
    case ValueType::uint64:
    case ValueType::int64:
    case ValueType::float64:
      return 8;
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return std::nullopt;
}

const BlockLayout* layout_of(TensorType type) {
  for (const NumberedLayout& entry : kLayouts) {
    if (entry.type == type) {
      return &entry.layout;
    }
  }
  return nullptr;
}

const Value* File::find(std::string_view key) const {
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : &found->second;
}

const TensorInfo* File::find_tensor(std::string_view tensor) const {
  const auto found = tensor_index.find(tensor);
  return found == tensor_index.end() ? nullptr : &tensors[found->second];
}

Result<std::optional<uint64_t>> File::whole_number(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) {
    return std::optional<uint64_t>();
  }
  if (const auto* number = std::get_if<uint64_t>(&value->content)) {
    return std::optional(*number);
  }
  if (const auto* number = std::get_if<int64_t>(&value->content)) {
    PTERO_REJECT_IF(*number < 0, invalid_program, "The value of {} ({}) is negative.", key,
                    *number);
    return std::optional(static_cast<uint64_t>(*number));
  }
  return wrong_type(key, *value, "a whole number");
}

Result<std::optional<double>> File::number(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) {
    return std::optional<double>();
  }
  if (const auto* number = std::get_if<double>(&value->content)) {
    PTERO_REJECT_IF(!std::isfinite(*number), invalid_program, "The value of {} ({}) is not finite.",
                    key, *number);
    return std::optional(*number);
  }
  if (const auto* number = std::get_if<uint64_t>(&value->content)) {
    return std::optional(static_cast<double>(*number));
  }
  if (const auto* number = std::get_if<int64_t>(&value->content)) {
    return std::optional(static_cast<double>(*number));
  }
  return wrong_type(key, *value, "a number");
}

Result<std::optional<bool>> File::boolean(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) {
    return std::optional<bool>();
  }
  if (const auto* truth = std::get_if<bool>(&value->content)) {
    return std::optional(*truth);
  }
  return wrong_type(key, *value, "bool");
}

Result<std::optional<std::string>> File::text(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) {
    return std::optional<std::string>();
  }
  if (const auto* text = std::get_if<std::string>(&value->content)) {
    return std::optional(*text);
  }
  return wrong_type(key, *value, "string");
}

Result<const Array*> File::array(std::string_view key, ValueType type) const {
  const Value* value = find(key);
  if (value == nullptr) {
    return static_cast<const Array*>(nullptr);
  }
  const auto* array = std::get_if<Array>(&value->content);
  if (array == nullptr) {
    return wrong_type(key, *value, "array");
  }
  PTERO_REJECT_IF(array->type != type, invalid_program,
                  "The elements of {} have the type {} instead of {}.", key, name_of(array->type),
                  name_of(type));
  return array;
}

Status for_each_string(const Array& array, const std::function<Status(std::string_view)>& sink) {
  PTERO_REJECT_IF(array.type != ValueType::string, internal, "The array holds no strings.");
  Input in(array.bytes);
  std::vector<char> buffer;
  for (uint64_t i = 0; i < array.count; ++i) {
    PTERO_ASSIGN_OR_RETURN(const std::string_view text,
                           in.string_view({"string", "an array", i}, kMaxItemSize, buffer));
    PTERO_RETURN_IF_ERROR(sink(text));
  }
  return ok_status();
}

Result<std::vector<int64_t>> integers_of(const Array& array) {
  switch (array.type) {
    case ValueType::uint8:
      return elements_as<uint8_t, int64_t>(array);
    case ValueType::int8:
      return elements_as<int8_t, int64_t>(array);
    case ValueType::uint16:
      return elements_as<uint16_t, int64_t>(array);
    case ValueType::int16:
      return elements_as<int16_t, int64_t>(array);
    case ValueType::uint32:
      return elements_as<uint32_t, int64_t>(array);
    case ValueType::int32:
      return elements_as<int32_t, int64_t>(array);
    case ValueType::uint64:
      return elements_as<uint64_t, int64_t>(array);
    case ValueType::int64:
      return elements_as<int64_t, int64_t>(array);
    default:
      return make_error(ErrorCode::invalid_program,
                        "The elements of an array have the type {} instead of a whole number.",
                        name_of(array.type));
  }
}

Result<std::vector<float>> floats_of(const Array& array) {
  PTERO_REJECT_IF(array.type != ValueType::float32, invalid_program,
                  "The elements of an array have the type {} instead of float32.",
                  name_of(array.type));
  return elements_as<float, float>(array);
}

}  // namespace ptero::gguf
