// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/printable.h"

#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace ptero::inspect {
namespace {

struct Character {
  uint32_t code = 0;
  size_t size = 0;  // 0: no well-formed UTF-8
};

Character character_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char first = byte(0);
  const size_t size = first < 0x80             ? 1
                      : (first & 0xe0) == 0xc0 ? 2
                      : (first & 0xf0) == 0xe0 ? 3
                      : (first & 0xf8) == 0xf0 ? 4
                                               : 0;
  if (size == 0 || size > text.size()) {
    return {};
  }
  uint32_t code = size == 1 ? first : first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return {};
    }
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kSmallest[size] || surrogate || code > 0x10ffff ? Character{}
                                                                : Character{code, size};
}

bool is_readable(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool line_or_direction = (code >= 0x200b && code <= 0x200f) ||
                                 (code >= 0x2028 && code <= 0x202e) ||
                                 (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
  return !control && !line_or_direction;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character character = character_at(text);
    const size_t size = character.size == 0 ? 1 : character.size;
    if (character.size == 0 || !is_readable(character.code)) {
      for (size_t i = 0; i < size; ++i) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      }
    } else {
      out += text[0] == '"' || text[0] == '\\' ? "\\" : "";
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace ptero::inspect
