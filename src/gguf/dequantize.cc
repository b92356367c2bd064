// SPDX-License-Identifier: BSD-3-Clause
#include "gguf/dequantize.h"

#include <bit>

#include "gguf/block_formats.h"

namespace ptero::gguf {
namespace {

using Expand = void (*)(const uint8_t* block, float* out);

void expand_f32(const uint8_t* block, float* out) {
  std::memcpy(out, block, sizeof(float));
}

void expand_f16(const uint8_t* block, float* out) {
  *out = load_half(block);
}

void expand_bf16(const uint8_t* block, float* out) {
  *out = std::bit_cast<float>(uint32_t{load_u16(block)} << 16);
}

// Blocks of 32: the low nibbles of 16 bytes are the first half, the high ones the second.
// `fifth` has bit i set where element i is 16 larger.
void expand_nibbles(const uint8_t* nibbles, uint32_t fifth, float scale, float offset, float* out) {
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t low = (nibbles[i] & 15u) | (fifth >> i & 1u) << 4;
    const uint32_t high = uint32_t{nibbles[i]} >> 4 | (fifth >> (i + 16) & 1u) << 4;
    out[i] = scale * static_cast<float>(low) + offset;
    out[i + 16] = scale * static_cast<float>(high) + offset;
  }
}

// scale, nibbles; 8 stands for zero
void expand_q4_0(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  expand_nibbles(block + 2, 0, scale, -8 * scale, out);
}

// scale, minimum, nibbles
void expand_q4_1(const uint8_t* block, float* out) {
  expand_nibbles(block + 4, 0, load_half(block), load_half(block + 2), out);
}

// scale, fifth bits, nibbles; 16 stands for zero
void expand_q5_0(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  expand_nibbles(block + 6, load_u32(block + 2), scale, -16 * scale, out);
}

// scale, minimum, fifth bits, nibbles
void expand_q5_1(const uint8_t* block, float* out) {
  expand_nibbles(block + 8, load_u32(block + 4), load_half(block), load_half(block + 2), out);
}

// scale, signed bytes
void expand_q8_0(const uint8_t* block, float* out) {
  const float scale = load_half(block);
  for (uint32_t i = 0; i < 32; ++i) {
    out[i] = scale * static_cast<float>(static_cast<int8_t>(block[2 + i]));
  }
}

Expand expander_of(TensorType type) {
  switch (type) {
    case TensorType::f32:
      return expand_f32;
    case TensorType::f16:
      return expand_f16;
    case TensorType::bf16:
      return expand_bf16;
    case TensorType::q4_0:
      return expand_q4_0;
    case TensorType::q4_1:
      return expand_q4_1;
    case TensorType::q5_0:
      return expand_q5_0;
    case TensorType::q5_1:
      return expand_q5_1;
    case TensorType::q8_0:
      return expand_q8_0;
    case TensorType::q2_k:
      return expand_q2_k;
    case TensorType::q3_k:
      return expand_q3_k;
    case TensorType::q4_k:
      return expand_q4_k;
    case TensorType::q5_k:
      return expand_q5_k;
    case TensorType::q6_k:
      return expand_q6_k;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_dequantize(TensorType type) {
  return expander_of(type) != nullptr;
}

Status dequantize(TensorType type, std::span<const std::byte> blocks, std::span<float> out) {
  const Expand expand = expander_of(type);
  const BlockLayout* layout = layout_of(type);
  PTERO_REJECT_IF(expand == nullptr || layout == nullptr, unsupported,
                  "Weights of the type {} cannot be read.", layout == nullptr ? "?" : layout->name);
  const size_t count = blocks.size() / layout->bytes;
  PTERO_REJECT_IF(blocks.size() % layout->bytes != 0 || out.size() != count * layout->elements,
                  internal, "{} bytes of {} do not make {} elements.", blocks.size(), layout->name,
                  out.size());
  const auto* in = reinterpret_cast<const uint8_t*>(blocks.data());
  for (size_t i = 0; i < count; ++i) {
    expand(in + i * layout->bytes, out.data() + i * layout->elements);
  }
  return ok_status();
}

}  // namespace ptero::gguf
