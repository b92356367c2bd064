// SPDX-License-Identifier: BSD-3-Clause
// Small tokenizer files for tests.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace ptero::text {

inline std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out += i + k > bytes.size() ? '=' : kDigits[group >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

// The 256 bytes, then `more`.
inline std::string tiktoken_file(const std::vector<std::string>& more) {
  std::string file;
  for (size_t rank = 0; rank < 256 + more.size(); ++rank) {
    const std::string token =
        rank < 256 ? std::string(1, static_cast<char>(rank)) : more[rank - 256];
    file += fmt::format("{} {}\n", base64(token), rank);
  }
  return file;
}

struct TestPiece {
  std::string text;
  float score = 0;
  uint8_t type = 1;
};

// Only small fields: every length is below 128.
inline std::string sentencepiece_file(const std::vector<TestPiece>& pieces, bool bpe) {
  std::string file;
  for (const TestPiece& piece : pieces) {
    std::string message = "\x0A";
    message += static_cast<char>(piece.text.size());
    message += piece.text + "\x15";
    for (unsigned shift = 0; shift < 32; shift += 8) {
      message += static_cast<char>(std::bit_cast<uint32_t>(piece.score) >> shift & 0xFF);
    }
    message += {'\x18', static_cast<char>(piece.type)};
    file += '\x0A';
    file += static_cast<char>(message.size());
    file += message;
  }
  return file.append({'\x12', 2, '\x18', static_cast<char>(bpe ? 2 : 1)});
}

}  // namespace ptero::text
