// SPDX-License-Identifier: BSD-3-Clause
// UTF-8 by hand, character classes and normal forms by utf8proc. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ptero::text {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// One step through bytes that need not be UTF-8.
struct Utf8Step {
  uint32_t code_point = 0xFFFD;
  size_t size = 1;  // bytes; of a broken character those that belong to it
  bool valid = false;
  bool incomplete = false;  // the text ends within a character that may still become valid
};
// Precondition: !text.empty().
Utf8Step utf8_step(std::string_view text);

void append_utf8(std::string& out, uint32_t code_point);

// With every broken character as U+FFFD, where the Unicode standard recommends to put them; a view
// of `text` itself, when it is valid, otherwise of `storage`.
std::string_view valid_utf8(std::string_view text, std::string& storage);

// Size in bytes of the character that starts at `position` of valid UTF-8.
inline size_t utf8_size(std::string_view text, size_t position) {
  const auto lead = static_cast<unsigned char>(text[position]);
  const size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return size < text.size() - position ? size : text.size() - position;
}

bool is_white_space(uint32_t code_point);      // the property White_Space
bool is_word(uint32_t code_point);             // letters, marks, numbers, connectors
bool is_punctuation(uint32_t code_point);      // category P, and the symbols of ASCII
bool is_numeric(uint32_t code_point);          // category N
bool is_letter(uint32_t code_point);           // category L
bool is_mark(uint32_t code_point);             // category M
bool is_nonspacing_mark(uint32_t code_point);  // category Mn
bool is_other(uint32_t code_point);            // category C, without what is not assigned
bool is_cjk(uint32_t code_point);              // the ideographs of BERT's list

// Position after the white space at the start, and of the white space at the end, of valid UTF-8.
size_t skip_white_space(std::string_view text);
size_t trim_white_space(std::string_view text);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
Result<std::string> normal_form(std::string_view text, NormalForm form);
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

// Size in bytes of the grapheme cluster at `position` of valid UTF-8.
size_t grapheme_size(std::string_view text, size_t position);

}  // namespace ptero::text
