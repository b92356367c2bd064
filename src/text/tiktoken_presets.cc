// SPDX-License-Identifier: BSD-3-Clause
#include "text/tiktoken_presets.h"

namespace ptero::text::detail {
namespace {

constexpr std::string_view kGpt2 =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Special tokens follow the ranks without a gap.
class Builder {
 public:
  Builder(std::string_view pattern, size_t ranks) : next_(static_cast<TokenId>(ranks)) {
    preset_.options.pattern = pattern;
  }
  Builder& add(std::string name) {
    preset_.options.special_tokens.emplace_back(std::move(name), next_++);
    return *this;
  }
  Builder& add_all(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      add(std::string(name));
    }
    return *this;
  }
  // "prefix<i>|>" for `count` numbers from `first` on.
  Builder& add_numbered(std::string_view prefix, size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      add(fmt::format("{}{}|>", prefix, i));
    }
    return *this;
  }
  Builder& skip_to(TokenId id) {
    next_ = id;
    return *this;
  }
  Builder& begin(std::string_view token) {
    preset_.options.begin_token = token;
    return *this;
  }
  Builder& nfc() {
    preset_.nfc = true;
    return *this;
  }
  TiktokenPreset done() { return std::move(preset_); }

 private:
  TiktokenPreset preset_;
  TokenId next_;
};

TiktokenPreset llama3(size_t ranks) {
  return Builder(kCl100k, ranks)
      .add_all({"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>",
                "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>", "<|step_id|>",
                "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>",
                "<|python_tag|>", "<|image|>"})
      .add_numbered("<|reserved_special_token_", 2, 244)
      .begin("<|begin_of_text|>")
      .done();
}

TiktokenPreset llama4(size_t ranks) {
  return Builder(kO200k, ranks)
      .add_all({"<|begin_of_text|>", "<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>",
                "<|fim_suffix|>", "<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>",
                "<|step|>"})
      .add_numbered("<|text_post_train_reserved_special_token_", 0, 6)
      .add_all({"<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>"})
      .add_numbered("<|text_post_train_reserved_special_token_", 8, 61)
      .add_all({"<|image_start|>", "<|image_end|>"})
      .add_numbered("<|vision_reserved_special_token_", 0, 2)
      .add_all({"<|tile_x_separator|>", "<|tile_y_separator|>"})
      .add_numbered("<|vision_reserved_special_token_", 2, 4)
      .add_all({"<|image|>", "<|vision_reserved_special_token_6|>", "<|patch|>"})
      .add_numbered("<|vision_reserved_special_token_", 7, 1041)
      .add_numbered("<|reasoning_reserved_special_token_", 0, 8)
      .add_all({"<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>"})
      .add_numbered("<|reserved_special_token_", 0, 905)
      .begin("<|begin_of_text|>")
      .done();
}

}  // namespace

Result<TiktokenPreset> tiktoken_preset(size_t ranks) {
  switch (ranks) {
    case 50256:  // GPT-2
      return Builder(kGpt2, ranks).add("<|endoftext|>").done();
    case 100256:  // cl100k_base
      return Builder(kCl100k, ranks)
          .skip_to(100257)
          .add_all({"<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"})
          .skip_to(100276)
          .add("<|endofprompt|>")
          .done();
    case 199998:  // o200k_base
      return Builder(kO200k, ranks)
          .skip_to(199999)
          .add("<|endoftext|>")
          .skip_to(200018)
          .add("<|endofprompt|>")
          .done();
    case 128000:
      return llama3(ranks);
    case 200000:
      return llama4(ranks);
    case 151643:  // Qwen
      return Builder(kQwen, ranks)
          .add_all({"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
          .add_numbered("<|extra_", 0, 205)
          .nfc()
          .done();
    default:
      return make_error(
          ErrorCode::unsupported,
          "Number of ranks ({}) in the tiktoken file is of no model that we know; its "
          "pattern and special tokens have to be given.",
          ranks);
  }
}

std::vector<std::string> tekken_special_tokens() {
  return {"<unk>",
          "<s>",
          "</s>",
          "[INST]",
          "[/INST]",
          "[AVAILABLE_TOOLS]",
          "[/AVAILABLE_TOOLS]",
          "[TOOL_RESULTS]",
          "[/TOOL_RESULTS]",
          "[TOOL_CALLS]",
          "[IMG]",
          "<pad>",
          "[IMG_BREAK]",
          "[IMG_END]",
          "[PREFIX]",
          "[MIDDLE]",
          "[SUFFIX]",
          "[SYSTEM_PROMPT]",
          "[/SYSTEM_PROMPT]",
          "[TOOL_CONTENT]"};
}

}  // namespace ptero::text::detail
