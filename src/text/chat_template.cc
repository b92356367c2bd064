// SPDX-License-Identifier: BSD-3-Clause
// The one file that knows minja. It throws, so everything is caught here and becomes a Result.
#include "text/chat_template.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include <minja/minja.hpp>
#include <nlohmann/json.hpp>

#include "text/json.h"

namespace ptero::text {

struct ChatTemplate::Parts {
  std::shared_ptr<minja::TemplateNode> root;
};

namespace {

using Json = nlohmann::ordered_json;

// Templates come with models of strangers; real ones have some 10 KiB and nest ten deep. The parser
// and the renderer recurse, so depth is stack.
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr size_t kMostDepth = 100;
constexpr int64_t kLongestRange = 100'000;

// An upper bound of how deep blocks and brackets nest.
size_t depth_of(std::string_view source) {
  size_t depth = 0;
  size_t deepest = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (c == '(' || c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ')' || c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  size_t blocks = 0;
  size_t deepest_block = 0;
  for (size_t at = source.find("{%"); at != std::string_view::npos;
       at = source.find("{%", at + 2)) {
    size_t word = at + 2;
    while (word < source.size() && (source[word] == ' ' || source[word] == '-')) {
      ++word;
    }
    const std::string_view rest = source.substr(word);
    if (rest.starts_with("if ") || rest.starts_with("for ") || rest.starts_with("macro ") ||
        rest.starts_with("filter ") || rest.starts_with("call")) {
      deepest_block = std::max(deepest_block, ++blocks);
    } else if (rest.starts_with("end") && blocks > 0) {
      --blocks;
    }
  }
  return std::max(deepest, deepest_block);
}

// As Jinja's, with an end.
minja::Value bounded_range() {
  return minja::Value::callable(
      [](const std::shared_ptr<minja::Context>&, minja::ArgumentsValue& args) {
        int64_t bounds[3] = {0, 0, 1};
        const size_t count = args.args.size();
        if (count == 0 || count > 3 || !args.kwargs.empty()) {
          throw std::runtime_error("range() takes one to three numbers");
        }
        for (size_t i = 0; i < count; ++i) {
          bounds[count == 1 ? 1 : i] = args.args[i].get<int64_t>();
        }
        const auto [start, end, step] = bounds;
        if (step == 0) {
          throw std::runtime_error("range() has a step of 0");
        }
        auto items = minja::Value::array();
        int64_t made = 0;
        for (int64_t at = start; step > 0 ? at < end : at > end; at += step) {
          if (++made > kLongestRange) {
            throw std::runtime_error("range() is too long");
          }
          items.push_back(minja::Value(at));
        }
        return items;
      });
}

// The first line of what a library says, which may quote half the template.
std::string first_line(const char* what) {
  const std::string_view text(what);
  return std::string(text.substr(0, text.find('\n')));
}

Result<Json> parse_object(std::string_view text, const char* what) {
  if (text.empty()) {
    return Json::object();
  }
  // Bounded in depth, which nlohmann's parser is not.
  PTERO_RETURN_IF_ERROR(parse_json(text, what));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  PTERO_REJECT_IF(json.is_discarded(), invalid_argument, "{} is not JSON.", what);
  return json;
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  PTERO_REJECT_IF(source.size() > kMostBytes, invalid_program,
                  "The chat template has {} bytes; the limit is {}.", source.size(), kMostBytes);
  PTERO_REJECT_IF(depth_of(source) > kMostDepth, invalid_program,
                  "The chat template nests more than {} deep.", kMostDepth);
  try {
    auto parts = std::make_shared<Parts>();
    parts->root = minja::Parser::parse(
        std::string(source),
        {.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false});
    return ChatTemplate(std::move(parts));
  } catch (const std::exception& error) {
    return make_error(ErrorCode::invalid_program, "The chat template is not Jinja: {}.",
                      first_line(error.what()));
  }
}

Result<std::string> ChatTemplate::apply(const std::vector<ChatMessage>& messages,
                                        const ChatOptions& options) const {
  Json list = Json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  return apply_json(list.dump(-1, ' ', false, Json::error_handler_t::replace), "", options);
}

Result<std::string> ChatTemplate::apply_json(std::string_view messages_json,
                                             std::string_view tools_json,
                                             const ChatOptions& options) const {
  PTERO_ASSIGN_OR_RETURN(Json values,
                         parse_object(options.template_kwargs, "chat_template_kwargs"));
  PTERO_REJECT_IF(!values.is_object(), invalid_argument,
                  "chat_template_kwargs is not a JSON object.");
  PTERO_ASSIGN_OR_RETURN(Json messages, parse_object(messages_json, "The list of messages"));
  PTERO_REJECT_IF(!messages.is_array(), invalid_argument,
                  "The list of messages is not a JSON array.");
  values["messages"] = std::move(messages);
  if (!tools_json.empty()) {
    PTERO_ASSIGN_OR_RETURN(values["tools"], parse_object(tools_json, "The list of tools"));
  }
  values["add_generation_prompt"] = options.add_generation_prompt;
  values["bos_token"] = options.bos_token;
  values["eos_token"] = options.eos_token;
  try {
    const auto context = minja::Context::make(minja::Value(values));
    context->set("range", bounded_range());
    std::string text = parts_->root->render(context);
    PTERO_REJECT_IF(text.size() > options.max_output_bytes, invalid_argument,
                    "The conversation takes {} bytes as text; the limit is {}.", text.size(),
                    options.max_output_bytes);
    return text;
  } catch (const std::exception& error) {
    return make_error(ErrorCode::invalid_argument,
                      "The chat template does not take this conversation: {}.",
                      first_line(error.what()));
  }
}

Result<ChatConfig> read_chat_config(std::string_view tokenizer_config_json) {
  PTERO_ASSIGN_OR_RETURN(const JsonValue root,
                         parse_json(tokenizer_config_json, "tokenizer_config.json"));
  PTERO_REJECT_IF(root.object() == nullptr, invalid_program,
                  "tokenizer_config.json is not an object.");
  ChatConfig config;
  // A token is its text, or an object with it as "content".
  const auto token = [&](const char* name) {
    const JsonValue* value = root.find(name);
    if (value != nullptr && value->object() != nullptr) {
      value = value->find("content");
    }
    return value != nullptr && value->string() != nullptr ? *value->string() : std::string();
  };
  config.bos_token = token("bos_token");
  config.eos_token = token("eos_token");
  const JsonValue* source = root.find("chat_template");
  if (source != nullptr && source->string() != nullptr) {
    config.chat_template = *source->string();
  } else if (source != nullptr && source->array() != nullptr) {
    for (const JsonValue& named : *source->array()) {
      const JsonValue* name = named.find("name");
      const JsonValue* text = named.find("template");
      if (name != nullptr && text != nullptr && name->string() != nullptr &&
          text->string() != nullptr &&
          (config.chat_template.empty() || *name->string() == "default")) {
        config.chat_template = *text->string();
      }
    }
  }
  return config;
}

std::string_view chatml_template() {
  return "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
         "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
}

}  // namespace ptero::text
