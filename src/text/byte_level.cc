// SPDX-License-Identifier: BSD-3-Clause
#include "text/byte_level.h"

#include <array>

#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr uint32_t kFirstStandIn = 0x100;
constexpr uint32_t kStandIns = 68;

struct Spelling {
  std::array<std::string, 256> of_byte;
  std::array<uint8_t, kStandIns> byte_of{};  // from U+0100 on
};

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

const Spelling& spelling() {
  static const Spelling table = [] {
    Spelling made;
    uint32_t next = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t c = byte;
      if (!stands_for_itself(byte)) {
        made.byte_of[next] = static_cast<uint8_t>(byte);
        c = kFirstStandIn + next++;
      }
      append_utf8(made.of_byte[byte], c);
    }
    return made;
  }();
  return table;
}

}  // namespace

std::string_view byte_spelling(uint8_t byte) {
  return spelling().of_byte[byte];
}

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) {
    out += byte_spelling(static_cast<uint8_t>(byte));
  }
  return out;
}

std::optional<std::string> unspell_bytes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    const uint32_t c = step.code_point;
    if (c < 0x100 && stands_for_itself(c)) {
      out += static_cast<char>(c);
    } else if (c >= kFirstStandIn && c < kFirstStandIn + kStandIns) {
      out += static_cast<char>(spelling().byte_of[c - kFirstStandIn]);
    } else {
      return std::nullopt;
    }
    at += step.size;
  }
  return out;
}

}  // namespace ptero::text
