// SPDX-License-Identifier: BSD-3-Clause
// What happens to text before it is split. Internal to src/text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/json.h"
#include "text/tables.h"

namespace ptero::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Replaces valid UTF-8 by valid UTF-8 of at most `limit` bytes; a longer result is an error.
  virtual Status apply(std::string& text, size_t limit) const = 0;
};
using NormalizerPtr = std::unique_ptr<const Normalizer>;

// The member "normalizer" of a tokenizer.json; null makes null.
Result<NormalizerPtr> make_normalizer(const JsonValue& json);

// How SentencePiece says it.
struct SentencePieceRules {
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool whitespace_as_suffix = false;
};
// `charsmap` may be empty; user-defined words pass unchanged.
Result<NormalizerPtr> make_sentencepiece_normalizer(std::string_view charsmap,
                                                    const SentencePieceRules& rules,
                                                    std::shared_ptr<const Trie> user_defined);

// How much text `size` bytes may become.
inline size_t normalized_limit(size_t size) {
  return size * 64 + 65536;
}
inline Status check_normalized(size_t size, size_t limit) {
  PTERO_REJECT_IF(size > limit, invalid_argument,
                  "Normalised text ({} bytes) is longer than the limit ({}) for its input.", size,
                  limit);
  return ok_status();
}

}  // namespace ptero::text
