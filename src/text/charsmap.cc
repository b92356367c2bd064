// SPDX-License-Identifier: BSD-3-Clause
#include "text/charsmap.h"

#include <cstdint>

#include "text/utf8.h"

namespace ptero::text {
namespace {

uint32_t read_u32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

// A unit of a double array, as the darts-clone library lays it out.
bool has_leaf(uint32_t unit) {
  return (unit >> 8 & 1) != 0;
}
uint32_t leaf_value(uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}
uint32_t label(uint32_t unit) {
  return unit & 0x800000FFu;
}
uint32_t offset(uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200u) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::read(std::string_view bytes) {
  Charsmap map;
  if (bytes.empty()) {
    return map;
  }
  PTERO_REJECT_IF(bytes.size() < 4, invalid_program,
                  "Normalisation table ({} bytes) ends within its header.", bytes.size());
  const uint32_t trie_bytes = read_u32(bytes);
  PTERO_REJECT_IF(trie_bytes % 4 != 0 || trie_bytes > bytes.size() - 4, invalid_program,
                  "Trie of the normalisation table ({} bytes) does not fit into the table ({}).",
                  trie_bytes, bytes.size());
  map.units_.resize(trie_bytes / 4);
  for (size_t i = 0; i < map.units_.size(); ++i) {
    map.units_[i] = read_u32(bytes.substr(4 + i * 4));
  }
  const std::string_view rest = bytes.substr(4 + trie_bytes);
  std::string storage;
  PTERO_REJECT_IF(valid_utf8(rest, storage).data() != rest.data(), invalid_program,
                  "Replacements of the normalisation table ({} bytes) are not UTF-8.", rest.size());
  map.replacements_ = rest;
  return map;
}

std::optional<Charsmap::Hit> Charsmap::search(std::string_view text, bool first) const {
  std::optional<Hit> best;
  if (units_.empty()) {
    return best;
  }
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) {
      return best;
    }
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit) || node >= units_.size()) {
      continue;
    }
    const size_t start = leaf_value(units_[node]);
    if (start >= replacements_.size()) {
      continue;
    }
    const size_t end = std::min(replacements_.find('\0', start), replacements_.size());
    const std::string_view text_of = std::string_view(replacements_).substr(start, end - start);
    // A value that points into a character, or a match that ends in one, is of a damaged table.
    const bool whole =
        i + 1 == text.size() || (static_cast<unsigned char>(text[i + 1]) & 0xC0) != 0x80;
    if (whole && (text_of.empty() || utf8_step(text_of).valid)) {
      best = Hit{i + 1, text_of};
      if (first) {
        return best;
      }
    }
  }
  return best;
}

}  // namespace ptero::text
