// SPDX-License-Identifier: BSD-3-Clause
#include "llm/chat.h"

namespace ptero::llm {

Result<std::vector<uint32_t>> chat_tokens(const Model& model,
                                          const std::vector<text::ChatMessage>& messages,
                                          const std::string& template_kwargs) {
  PTERO_REJECT_IF(!model.tokenizer(), unsupported,
                  "The model brings no tokenizer, and none was given.");
  if (!model.chat_template()) {
    std::string text;
    for (const text::ChatMessage& message : messages) {
      text += message.content + "\n";
    }
    return model.tokenizer()->encode(text);
  }
  text::ChatOptions options;
  options.bos_token = model.chat_config().bos_token;
  options.eos_token = model.chat_config().eos_token;
  options.template_kwargs = template_kwargs;
  PTERO_ASSIGN_OR_RETURN(const std::string text, model.chat_template()->apply(messages, options));
  return model.tokenizer()->encode(text, {.add_special = false});
}

}  // namespace ptero::llm
