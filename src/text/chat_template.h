// SPDX-License-Identifier: BSD-3-Clause
// Conversations as the text that a chat model was trained on, by the Jinja template that comes with
// the model.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ptero::text {

class JsonValue;

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = true;  // ends with the start of an answer
  std::string bos_token;              // what the template calls so
  std::string eos_token;
  // A JSON object (or empty) whose members become variables of the template, such as
  // {"enable_thinking": false}.
  std::string template_kwargs;
  size_t max_output_bytes = size_t{16} << 20;
};

// Immutable; cheap to copy; apply() may be called from several threads at once.
class ChatTemplate {
 public:
  // Code invalid_program, with the place, when the template is not Jinja as we know it.
  static Result<ChatTemplate> parse(std::string_view source);

  // Encode the text with add_special = false: the template writes begin tokens itself.
  // Code invalid_argument when the template refuses the conversation (raise_exception: its own
  // words), the options are wrong, or the text gets longer than max_output_bytes. Time and memory
  // are bounded whatever the template does.
  Result<std::string> apply(const std::vector<ChatMessage>& messages, const ChatOptions&) const;

  // The same from a JSON array of messages, which may hold whatever the template knows (content
  // in parts, tool calls); `tools_json` is a JSON array or empty.
  Result<std::string> apply_json(std::string_view messages_json, std::string_view tools_json,
                                 const ChatOptions&) const;

 private:
  struct Parts;
  explicit ChatTemplate(std::shared_ptr<const Parts> parts);
  Result<std::string> apply_values(const JsonValue& messages, const JsonValue& tools,
                                   const ChatOptions& options) const;

  std::shared_ptr<const Parts> parts_;
};

// What tokenizer_config.json says; a missing member is empty.
struct ChatConfig {
  std::string chat_template;  // of a list of named templates the one called "default"
  std::string bos_token;
  std::string eos_token;
};
Result<ChatConfig> read_chat_config(std::string_view tokenizer_config_json);

// The usual form for models that bring no template: "<|im_start|>role\ncontent<|im_end|>\n".
std::string_view chatml_template();

}  // namespace ptero::text
