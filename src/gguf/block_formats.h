// SPDX-License-Identifier: BSD-3-Clause
// Private to src/gguf: one block of each format -> its elements. Numbers in blocks are
// little-endian and not aligned.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace ptero::gguf {

inline uint16_t load_u16(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}
inline uint32_t load_u32(const uint8_t* at) {
  uint32_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}
inline float load_half(const uint8_t* at) {
  return half_to_float(load_u16(at));
}

// 256 elements each.
void expand_q2_k(const uint8_t* block, float* out);
void expand_q3_k(const uint8_t* block, float* out);
void expand_q4_k(const uint8_t* block, float* out);
void expand_q5_k(const uint8_t* block, float* out);
void expand_q6_k(const uint8_t* block, float* out);

}  // namespace ptero::gguf
