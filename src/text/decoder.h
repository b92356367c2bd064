// SPDX-License-Identifier: BSD-3-Clause
// From tokens back to text, one token at a time. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/json.h"
#include "text/regex.h"

namespace ptero::text {

struct DecodeStep {
  enum class Kind {
    replace,        // `from` by `to`
    byte_fallback,  // tokens like "<0x0A>" are bytes
    fuse,           // what follows sees one text instead of tokens
    strip,          // up to `count` times `from` at the start, up to `count_end` at the end
    metaspace,      // `from` is a space, and nothing in the first token
    byte_level,     // characters spell bytes
    join,           // a space between tokens
    word_piece,     // tokens without the prefix `from` start a word; `flag`: tidy punctuation
    word_suffix,    // `from` ends a word
    sentence_piece  // as `from` is a space, but not at the start (`flag`: nor several of them)
  };
  Kind kind = Kind::fuse;
  std::string from;
  std::string to;
  std::optional<Regex> pattern;  // replace
  size_t count = 0;
  size_t count_end = 0;
  bool flag = false;
};

// The member "decoder" of a tokenizer.json; null means tokens with spaces between them.
Result<std::vector<DecodeStep>> make_decoder(const JsonValue& json);

namespace detail {

// Where one run of decoding is. Always gives valid UTF-8, whole characters only.
class DecodeState {
 public:
  explicit DecodeState(const std::vector<DecodeStep>& steps);

  // Tokens are valid UTF-8. `out` grows by what is certain.
  void push(std::string_view token, std::string& out);
  void finish(std::string& out);

 private:
  struct Stage {
    std::string held;     // bytes or text that is not certain
    size_t tokens = 0;    // seen
    size_t stripped = 0;  // at the start
    bool fused = false;   // sees one text
    bool started = false;
  };
  void feed(size_t stage, std::string_view text, std::string& out);
  void end(size_t stage, std::string& out);
  void release_bytes(size_t stage, bool all, bool each_byte, std::string& out);
  void strip(size_t stage, std::string_view text, std::string& out);

  const std::vector<DecodeStep>* steps_;
  std::vector<Stage> stages_;
};

}  // namespace detail
}  // namespace ptero::text
