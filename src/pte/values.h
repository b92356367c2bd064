// SPDX-License-Identifier: BSD-3-Clause
// Element types and the few value types that the program and the delegate's graph share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ptero::pte {

// Element types of .pte, .ptd and .bpte tensors, numbered as in the file (and in PyTorch). The
// readers let no other number through.
enum class ScalarType : int8_t {
  uint8 = 0,
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  float16 = 5,
  float32 = 6,
  float64 = 7,
  boolean = 11,  // one byte, 0 or 1
  qint8 = 12,
  quint8 = 13,
  qint32 = 14,
  bfloat16 = 15,
  quint4x2 = 16,  // two or four values a byte: no size per element
  quint2x4 = 17,
  bits16 = 22,
  float8_e5m2 = 23,
  float8_e4m3fn = 24,
  float8_e5m2fnuz = 25,
  float8_e4m3fnuz = 26,
  uint16 = 27,
  uint32 = 28,
  uint64 = 29,
};

// Element types of graph tensors, numbered as in the file.
enum class GraphDtype : int8_t {
  boolean = 0,  // one byte, 0 or 1
  uint8 = 1,
  int8 = 2,
  int32 = 3,
  float16 = 4,
  float32 = 5,
  float64 = 6,
  int64 = 7,
  unset = 127,  // only as a staging type: same as the tensor's own
};

// "float32"; empty for a number that the file format does not define.
std::string_view name_of(ScalarType type);
std::string_view name_of(GraphDtype type);

// Bytes of one element; empty for packed types, `unset` and undefined numbers.
std::optional<uint32_t> element_size(ScalarType type);
std::optional<uint32_t> element_size(GraphDtype type);

struct Null {
  bool operator==(const Null&) const = default;
};
struct DoubleList {
  std::vector<double> items;
  bool operator==(const DoubleList&) const = default;
};
struct BoolList {
  std::vector<bool> items;
  bool operator==(const BoolList&) const = default;
};

}  // namespace ptero::pte
