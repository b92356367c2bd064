// SPDX-License-Identifier: BSD-3-Clause
// Blocks whose elements can be read off. tests/python compares all formats with another reader.
#include "gguf/dequantize.h"

#include <vector>

#include <doctest/doctest.h>

#include "base/half.h"
#include "gguf/test_file.h"

namespace ptero::gguf {
namespace {

using test::append;
using test::Bytes;

std::vector<float> expand(TensorType type, const Bytes& blocks) {
  const BlockLayout& layout = *layout_of(type);
  REQUIRE(blocks.size() % layout.bytes == 0);
  std::vector<float> out(blocks.size() / layout.bytes * layout.elements);
  const Status status = dequantize(type, blocks, out);
  REQUIRE_MESSAGE(status.ok(), status.error().to_string());
  return out;
}

void append_bytes(Bytes& out, size_t count, uint8_t value) {
  out.insert(out.end(), count, std::byte{value});
}

TEST_CASE("numbers without blocks") {
  Bytes bytes;
  append(bytes, 1.25f);
  CHECK(expand(TensorType::f32, bytes) == std::vector<float>{1.25f});
  bytes.clear();
  append(bytes, float_to_half(-0.5f));
  append(bytes, float_to_half(65504.0f));
  CHECK(expand(TensorType::f16, bytes) == std::vector<float>{-0.5f, 65504.0f});
  bytes.clear();
  append(bytes, uint16_t{0x3fc0});
  CHECK(expand(TensorType::bf16, bytes) == std::vector<float>{1.5f});
}

TEST_CASE("Q4_0: the second half in the high nibbles, 8 is zero") {
  Bytes bytes;
  append(bytes, float_to_half(0.5f));
  for (uint32_t i = 0; i < 16; ++i) {
    append(bytes, static_cast<uint8_t>(i | (15 - i) << 4));
  }
  const std::vector<float> out = expand(TensorType::q4_0, bytes);
  for (int i = 0; i < 16; ++i) {
    CHECK(out[static_cast<size_t>(i)] == 0.5f * static_cast<float>(i - 8));
    CHECK(out[static_cast<size_t>(i + 16)] == 0.5f * static_cast<float>(7 - i));
  }
}

TEST_CASE("Q5_1: fifth bits by element, an offset") {
  Bytes bytes;
  append(bytes, float_to_half(1.0f));
  append(bytes, float_to_half(-3.0f));
  append(bytes, uint32_t{0x80000001});
  append_bytes(bytes, 16, 0x21);
  const std::vector<float> out = expand(TensorType::q5_1, bytes);
  CHECK(out[0] == 14);   // 1 + 16 - 3
  CHECK(out[1] == -2);   // 1 - 3
  CHECK(out[16] == -1);  // 2 - 3
  CHECK(out[31] == 15);  // 2 + 16 - 3
}

TEST_CASE("Q6_K: four runs of 32 in each half, 32 is zero") {
  Bytes bytes;
  append_bytes(bytes, 128, 0x50);
  append_bytes(bytes, 64, 0xe4);  // two high bits of the runs: 0, 1, 2, 3
  for (uint8_t i = 0; i < 16; ++i) {
    append(bytes, i);
  }
  append(bytes, float_to_half(1.0f));
  const std::vector<float> out = expand(TensorType::q6_k, bytes);
  CHECK(out[16] == 1 * (0 - 32));
  CHECK(out[32] == 2 * (16 - 32));
  CHECK(out[64] == 4 * (37 - 32));
  CHECK(out[127] == 7 * (53 - 32));
  CHECK(out[255] == 15 * (53 - 32));
}

TEST_CASE("what cannot be expanded") {
  std::vector<float> out(256);
  const Bytes block(66);
  CHECK(!can_dequantize(TensorType::iq2_xxs));
  const Status status = dequantize(TensorType::iq2_xxs, block, out);
  REQUIRE(!status.ok());
  CHECK(status.error().message() == "Weights of the type IQ2_XXS cannot be read.");
  CHECK(status.error().code() == ErrorCode::unsupported);
  CHECK(dequantize(TensorType::q4_0, Bytes(17), out).error().code() == ErrorCode::internal);
  CHECK(dequantize(TensorType::q4_0, Bytes(18), out).error().code() == ErrorCode::internal);
}

}  // namespace
}  // namespace ptero::gguf
