// SPDX-License-Identifier: BSD-3-Clause
// What a GGUF file says, as plain values: reader.h makes one from bytes. Weights and the large
// arrays (a vocabulary) stay where they are, as ranges of the file.
//
// Lines marked [checked] are true of every File that the reader returns.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"

namespace ptero::gguf {

// Types of metadata, numbered as in the file.
enum class ValueType : uint32_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,  // one byte, 0 or 1
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};

// "uint32"; empty for a number that the format does not define.
std::string_view name_of(ValueType type);

// Bytes of one value in the file; nothing for strings and arrays, which say their length.
std::optional<uint32_t> value_size(ValueType type);

// Types of tensors, numbered as in the file. Numbers that are not here are no type of today.
enum class TensorType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
};

// How a row is stored: blocks of `elements` in `bytes` each.
struct BlockLayout {
  std::string_view name;  // "Q4_K", as people write it
  uint32_t elements = 0;
  uint32_t bytes = 0;
};

// Null for a number that is no type.
const BlockLayout* layout_of(TensorType type);

// Elements one after the other; [checked] none is an array.
struct Array {
  ValueType type = ValueType::uint8;
  uint64_t count = 0;
  ByteRange bytes;  // [checked] exactly the elements; strings and booleans are well-formed
};

// Numbers are widened.
struct Value {
  ValueType type = ValueType::uint8;
  std::variant<uint64_t, int64_t, double, bool, std::string, Array> content;
};

struct TensorInfo {
  std::string name;                   // [checked] not empty, unique
  std::vector<uint64_t> dims;         // innermost first; [checked] 1 to 4, none is 0
  uint64_t elements = 0;              // [checked] product of dims
  TensorType type = TensorType::f32;  // [checked] has a layout; dims[0] is whole blocks
  ByteRange data;                     // [checked] exactly the elements; overlaps no other's
};

struct File {
  uint32_t version = 0;    // [checked] 2 or 3
  uint32_t alignment = 0;  // bytes; [checked] a power of two
  std::string name;        // of the source, for messages
  std::map<std::string, Value, std::less<>> metadata;
  std::vector<TensorInfo> tensors;  // in the file's order

  // Null if there is none.
  const Value* find(std::string_view key) const;
  const TensorInfo* find_tensor(std::string_view tensor) const;

  // The value of a key: nothing if there is none, code invalid_program if its type is another.
  // A number that is stored as another type of number is taken when it is representable.
  Result<std::optional<uint64_t>> whole_number(std::string_view key) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> text(std::string_view key) const;
  // Null if there is none.
  Result<const Array*> array(std::string_view key, ValueType type) const;

  std::map<std::string, size_t, std::less<>> tensor_index;  // [checked] by name, into `tensors`
};

// Calls `sink` with each string in order, valid for that call; stops at the first error.
Status for_each_string(const Array& array, const std::function<Status(std::string_view)>& sink);

// The elements of an array of integers that fit; code invalid_program for an array of others.
Result<std::vector<int64_t>> integers_of(const Array& array);
// The elements of an array of float32.
Result<std::vector<float>> floats_of(const Array& array);

}  // namespace ptero::gguf
