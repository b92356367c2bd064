// SPDX-License-Identifier: BSD-3-Clause
// From a conversation to the tokens of a prompt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/model.h"
#include "text/chat_template.h"

namespace ptero::llm {

// As the model's chat template writes it; without one, the contents alone, a line each.
// `template_kwargs`: see text::ChatOptions. Code unsupported for a model without a tokenizer, and
// the errors of ChatTemplate::apply() and Tokenizer::encode().
Result<std::vector<uint32_t>> chat_tokens(const Model& model,
                                          const std::vector<text::ChatMessage>& messages,
                                          const std::string& template_kwargs);

}  // namespace ptero::llm
