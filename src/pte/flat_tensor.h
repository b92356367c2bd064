// SPDX-License-Identifier: BSD-3-Clause
// What a .ptd file says: weights that were exported outside of the program.
// flat_tensor_reader.h makes one from bytes. [checked] has the meaning that program.h gives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "pte/values.h"

namespace ptero::pte {

struct TensorLayout {
  ScalarType scalar_type = ScalarType::float32;
  std::vector<int32_t> sizes;      // [checked] none negative
  std::vector<uint8_t> dim_order;  // outermost to innermost; [checked] a permutation of the rank
  bool operator==(const TensorLayout&) const = default;
};

struct FlatTensorEntry {
  std::string key;                     // [checked] not empty, unique
  uint32_t segment = 0;                // [checked] index into FlatTensor::segments
  std::optional<TensorLayout> layout;  // none: bytes that are no tensor. [checked] the segment is
                                       // as long as the tensor
  bool operator==(const FlatTensorEntry&) const = default;
};

struct FlatTensor {
  uint32_t version = 0;
  std::vector<ByteRange> segments;
  std::vector<FlatTensorEntry> entries;
};

}  // namespace ptero::pte
