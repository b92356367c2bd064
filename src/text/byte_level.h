// SPDX-License-Identifier: BSD-3-Clause
// The spelling of bytes as printable characters that byte-level vocabularies use: the printable
// ones of Latin-1 stand for themselves, the others for U+0100 and on. Internal to src/text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptero::text {

// The character of a byte, in UTF-8.
std::string_view byte_spelling(uint8_t byte);
std::string spell_bytes(std::string_view bytes);
// Back; nothing when a character stands for no byte. Precondition: valid UTF-8.
std::optional<std::string> unspell_bytes(std::string_view text);

}  // namespace ptero::text
