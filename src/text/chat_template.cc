// SPDX-License-Identifier: BSD-3-Clause
#include "text/chat_template.h"

#include <algorithm>

#include "text/jinja/interpreter.h"
#include "text/json.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxHeap = size_t{256} << 20;

// A token of tokenizer_config.json: a string, or an object with a string "content".
std::string token_text(const JsonValue& config, std::string_view name) {
  const JsonValue* token = config.find(name);
  if (token != nullptr && token->object() != nullptr) {
    token = token->find("content");
  }
  return token != nullptr && token->string() != nullptr ? *token->string() : "";
}

}  // namespace

struct ChatTemplate::Parts {
  jinja::Template source;
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  PTERO_ASSIGN_OR_RETURN(jinja::Template parsed, jinja::parse_template(source));
  auto parts = std::make_shared<Parts>();
  parts->source = std::move(parsed);
  return ChatTemplate(std::move(parts));
}

Result<std::string> ChatTemplate::apply(const std::vector<ChatMessage>& messages,
                                        const ChatOptions& options) const {
  JsonArray list;
  for (const ChatMessage& message : messages) {
    JsonObject object;
    std::string storage;
    object.emplace_back("role", JsonValue(std::string(valid_utf8(message.role, storage))));
    object.emplace_back("content", JsonValue(std::string(valid_utf8(message.content, storage))));
    list.push_back(JsonValue(std::move(object)));
  }
  return apply_values(JsonValue(std::move(list)), JsonValue(), options);
}

Result<std::string> ChatTemplate::apply_json(std::string_view messages_json,
                                             std::string_view tools_json,
                                             const ChatOptions& options) const {
  PTERO_ASSIGN_OR_RETURN(const JsonValue messages, parse_json(messages_json, "Text of messages"));
  PTERO_REJECT_IF(messages.array() == nullptr, invalid_argument,
                  "Text of messages is {} instead of an array.", messages.kind());
  JsonValue tools;
  if (!tools_json.empty()) {
    PTERO_ASSIGN_OR_RETURN(tools, parse_json(tools_json, "Text of tools"));
    PTERO_REJECT_IF(tools.array() == nullptr && !tools.is_null(), invalid_argument,
                    "Text of tools is {} instead of an array.", tools.kind());
  }
  return apply_values(messages, tools, options);
}

Result<std::string> ChatTemplate::apply_values(const JsonValue& messages, const JsonValue& tools,
                                               const ChatOptions& options) const {
  JsonValue kwargs;
  if (!options.template_kwargs.empty()) {
    PTERO_ASSIGN_OR_RETURN(kwargs, parse_json(options.template_kwargs, "Text of template_kwargs"));
    PTERO_REJECT_IF(kwargs.object() == nullptr, invalid_argument,
                    "Text of template_kwargs is {} instead of an object.", kwargs.kind());
  }
  jinja::Heap heap(kMaxHeap + options.max_output_bytes);
  jinja::Interpreter run(parts_->source, heap, options.max_output_bytes);
  std::string storage;
  run.set("messages", heap.from_json(messages));
  run.set("tools", heap.from_json(tools));
  run.set("documents", jinja::Value::none());
  run.set("add_generation_prompt", jinja::Value::of(options.add_generation_prompt));
  run.set("bos_token", heap.string(std::string(valid_utf8(options.bos_token, storage))));
  run.set("eos_token", heap.string(std::string(valid_utf8(options.eos_token, storage))));
  if (kwargs.object() != nullptr) {
    for (const auto& [name, value] : *kwargs.object()) {
      run.set(name, heap.from_json(value));
    }
  }
  std::string text = run.run();
  if (heap.failed()) {
    if (run.raised()) {
      return make_error(ErrorCode::invalid_argument,
                        "The chat template refuses the conversation: {}", heap.error());
    }
    return make_error(ErrorCode::invalid_argument, "Chat template, line {}: {}.", run.error_line(),
                      heap.error());
  }
  return text;
}

Result<ChatConfig> read_chat_config(std::string_view tokenizer_config_json) {
  PTERO_ASSIGN_OR_RETURN(const JsonValue json,
                         parse_json(tokenizer_config_json, "Tokenizer configuration"));
  PTERO_REJECT_IF(json.object() == nullptr, invalid_program,
                  "Tokenizer configuration is {} instead of an object.", json.kind());
  ChatConfig config{.bos_token = token_text(json, "bos_token"),
                    .eos_token = token_text(json, "eos_token")};
  const JsonValue* templates = json.find("chat_template");
  if (templates == nullptr) {
    return config;
  }
  if (templates->string() != nullptr) {
    config.chat_template = *templates->string();
  } else if (templates->array() != nullptr) {
    for (const JsonValue& item : *templates->array()) {
      const JsonValue* name = item.find("name");
      const JsonValue* source = item.find("template");
      if (name != nullptr && name->string() != nullptr && *name->string() == "default" &&
          source != nullptr && source->string() != nullptr) {
        config.chat_template = *source->string();
      }
    }
  }
  return config;
}

std::string_view chatml_template() {
  return "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + "
         "message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
}

}  // namespace ptero::text
