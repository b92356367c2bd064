// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: the tokenizer of a GGUF file in the words of Hugging Face's files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"

namespace ptero::convert {

struct TokenizerFiles {
  std::optional<std::string> tokenizer;      // tokenizer.json; none: see `missing`
  std::string config;                        // tokenizer_config.json
  std::optional<std::string> chat_template;  // Jinja
  std::string missing;                       // why there is no tokenizer, a sentence
  std::string note;                          // what may be wrong with it, a sentence
  std::optional<uint32_t> bos;
  std::vector<uint32_t> ends;  // ids that end an answer, the model's own first
};

// Code invalid_program when ids, types or counts contradict each other or exceed `vocabulary`.
Result<TokenizerFiles> read_tokenizer(const gguf::File& file, uint32_t vocabulary);

// Text as a JSON string with its quotes. `text` is UTF-8.
void append_json(std::string& out, std::string_view text);

}  // namespace ptero::convert
