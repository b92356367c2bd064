// SPDX-License-Identifier: BSD-3-Clause
// What a program says about itself as a language model, by ExecuTorch's conventions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "pte/program.h"

namespace ptero::llm {

// Named data that Ptero adds to a program (docs/formats.md).
inline constexpr std::string_view kTokenizerKey = "ptero.tokenizer.json";
inline constexpr std::string_view kTokenizerConfigKey = "ptero.tokenizer_config.json";
inline constexpr std::string_view kChatTemplateKey = "ptero.chat_template.jinja";

struct Metadata {
  uint32_t vocab_size = 0;        // last dimension of the logits
  uint32_t max_context = 0;       // positions that the caches hold (get_max_context_len)
  uint32_t trained_context = 0;   // get_trained_context_len; 0: the program does not say
  uint32_t max_tokens = 0;        // of one call
  bool fixed = false;             // every call takes exactly max_tokens, which is 1
  bool all_logits = false;        // logits of every token, not of the last one only
  bool f16_gemm = false;          // products in f16 are fine (enable_f16_gemm)
  std::vector<uint32_t> end_ids;  // get_eos_ids, get_eos_id
};

// The integers that a method without instructions gives (get_max_seq_len and the like); empty when
// there is no such method.
std::vector<int64_t> constant_integers(const pte::Program& program, std::string_view method);

// Code unsupported, with what is missing, for a program that is not a language model: method
// forward takes int64 tokens [1, S] and an int64 position [1], and gives float logits. With a
// `context` above 0 it is what the model is once its caches hold so many positions; then code
// invalid_argument for less than 2 and for more than the model was trained for.
Result<Metadata> read_metadata(const pte::Program& program, uint32_t context = 0);

}  // namespace ptero::llm
