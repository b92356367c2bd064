// SPDX-License-Identifier: BSD-3-Clause
// Super-blocks of 256 elements: quantised scales of parts of 16 or 32 elements, and one or two
// halves that all of them are multiplied by.
#include "gguf/block_formats.h"

namespace ptero::gguf {
namespace {

// Q2_K and Q3_K keep four elements in a byte. 32 bytes hold 128 elements: their lowest two bits the
// first 32, the next two bits the next 32 and so on. Calls `put` with the element, its byte and the
// shift of its bits.
template <typename Put>
void for_each_pair_of_bits(const Put& put) {
  for (uint32_t i = 0; i < 256; ++i) {
    put(i, i / 128 * 32 + i % 32, i % 128 / 32 * 2);
  }
}

struct ScaleAndMinimum {
  float scale;
  float minimum;
};

// Q4_K and Q5_K: eight scales and eight minima of 6 bits in 12 bytes. The first four of each stand
// in the low bits of bytes of their own; the others have their low four bits in the last four
// bytes, and their high two in the top of the bytes before.
ScaleAndMinimum packed_scale(const uint8_t* packed, uint32_t part) {
  if (part < 4) {
    return {static_cast<float>(packed[part] & 63u), static_cast<float>(packed[part + 4] & 63u)};
  }
  const uint32_t scale = (packed[part + 4] & 15u) | uint32_t{packed[part - 4]} >> 6 << 4;
  const uint32_t minimum = uint32_t{packed[part + 4]} >> 4 | uint32_t{packed[part]} >> 6 << 4;
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

// Q4_K and Q5_K: parts of 32, two to 32 bytes: the low nibbles and then the high ones. `fifth`, if
// there is one, has the fifth bits of part p in bit p of its 32 bytes.
void expand_32s(const uint8_t* block, const uint8_t* fifth, const uint8_t* nibbles, float* out) {
  const float scale = load_half(block);
  const float minimum = load_half(block + 2);
  for (uint32_t part = 0; part < 8; ++part) {
    const ScaleAndMinimum own = packed_scale(block + 4, part);
    const float step = scale * own.scale;
    const float offset = minimum * own.minimum;
    const uint8_t* bytes = nibbles + part / 2 * 32;
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t bits = uint32_t{bytes[i]} >> (part % 2 * 4) & 15u;
      if (fifth != nullptr) {
        bits |= (uint32_t{fifth[i]} >> part & 1u) << 4;
      }
      out[part * 32 + i] = step * static_cast<float>(bits) - offset;
    }
  }
}

}  // namespace

// 16 bytes with a scale (low nibble) and a minimum (high nibble) of 16 elements each; 64 bytes of
// elements; scale of the scales; scale of the minima
void expand_q2_k(const uint8_t* block, float* out) {
  const uint8_t* bits = block + 16;
  const float scale = load_half(block + 80);
  const float minimum = load_half(block + 82);
  for_each_pair_of_bits([&](uint32_t i, uint32_t byte, uint32_t shift) {
    const uint8_t own = block[i / 16];
    out[i] = scale * static_cast<float>(own & 15u) *
                 static_cast<float>(uint32_t{bits[byte]} >> shift & 3u) -
             minimum * static_cast<float>(own >> 4);
  });
}

// 32 bytes with the third bits; 64 bytes with the other two; 12 bytes with 16 scales of 6 bits, 32
// standing for zero; scale of the scales. An element whose third bit is not set is 4 smaller.
void expand_q3_k(const uint8_t* block, float* out) {
  const uint8_t* bits = block + 32;
  const uint8_t* packed = block + 96;
  const float scale = load_half(block + 108);
  float own[16];
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t low = uint32_t{packed[i % 8]} >> (i / 8 * 4) & 15u;
    const uint32_t high = uint32_t{packed[8 + i % 4]} >> (i / 4 * 2) & 3u;
    own[i] = scale * (static_cast<float>(low | high << 4) - 32);
  }
  for_each_pair_of_bits([&](uint32_t i, uint32_t byte, uint32_t shift) {
    const uint32_t third = uint32_t{block[i % 32]} >> (i / 32) & 1u;
    const uint32_t value = (uint32_t{bits[byte]} >> shift & 3u) | third << 2;
    out[i] = own[i / 16] * (static_cast<float>(value) - 4);
  });
}

// scale of the scales; scale of the minima; 12 bytes of both; 128 bytes of nibbles
void expand_q4_k(const uint8_t* block, float* out) {
  expand_32s(block, nullptr, block + 16, out);
}

// scale of the scales; scale of the minima; 12 bytes of both; 32 of fifth bits; 128 of nibbles
void expand_q5_k(const uint8_t* block, float* out) {
  expand_32s(block, block + 16, block + 48, out);
}

// 128 bytes of low nibbles; 64 with the high two bits; 16 signed scales of 16 elements each; scale
// of the scales. Each half of the block is four runs of 32: the low nibbles of 64 bytes, then their
// high ones; run r has its high bits at 2r in the half's 32 bytes. 32 stands for zero.
void expand_q6_k(const uint8_t* block, float* out) {
  const float scale = load_half(block + 208);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t half = i / 128;
    const uint32_t run = i % 128 / 32;
    const uint8_t low_byte = block[half * 64 + run % 2 * 32 + i % 32];
    const uint8_t high_byte = block[128 + half * 32 + i % 32];
    const uint32_t low = uint32_t{low_byte} >> (run / 2 * 4) & 15u;
    const uint32_t high = uint32_t{high_byte} >> (run * 2) & 3u;
    const auto own = static_cast<int8_t>(block[192 + i / 16]);
    out[i] = scale * static_cast<float>(own) * (static_cast<float>(low | high << 4) - 32);
  }
}

}  // namespace ptero::gguf
