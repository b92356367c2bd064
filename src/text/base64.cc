// SPDX-License-Identifier: BSD-3-Clause
#include "text/base64.h"

#include <cstdint>

namespace ptero::text {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') {
    return c - 'A';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 26;
  }
  if (c >= '0' && c <= '9') {
    return c - '0' + 52;
  }
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

Result<std::string> decode_base64(std::string_view text) {
  const std::string_view whole = text;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) {
    text.remove_suffix(1);
  }
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = value_of(c);
    PTERO_REJECT_IF(value < 0, invalid_program, "Text ({}) of {} bytes is not base64.",
                    whole.substr(0, 32), whole.size());
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  PTERO_REJECT_IF(text.size() % 4 == 1, invalid_program,
                  "Text ({}) of {} bytes is not base64: it ends within a byte.",
                  whole.substr(0, 32), whole.size());
  return out;
}

}  // namespace ptero::text
