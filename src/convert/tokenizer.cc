// SPDX-License-Identifier: BSD-3-Clause
#include "convert/tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "convert/sentencepiece.h"

namespace ptero::convert {
namespace {

// tokenizer.ggml.token_type
enum TokenType : int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4 };

// Regular expressions that split text before byte pairs are merged, each with the models that use
// it under their GGUF names.
struct Splitter {
  // One Split after the other; none: that of GPT-2, inside of ByteLevel.
  std::array<std::string_view, 4> patterns;
  bool digits = false;       // each digit is alone, first of all
  bool nfc = false;          // the text is composed first
  bool whole_words = false;  // a word that is a token is not merged from parts
  bool starts = false;       // texts start with the BOS token unless the file says otherwise
};

#define PTERO_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|)"
#define PTERO_WORDS R"([^\r\n\p{L}\p{N}]?\p{L}+|)"
#define PTERO_REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr std::string_view kThreeDigits = PTERO_CONTRACTIONS PTERO_WORDS R"(\p{N}{1,3})" PTERO_REST;
constexpr std::string_view kOneDigit = PTERO_CONTRACTIONS PTERO_WORDS R"(\p{N})" PTERO_REST;

// What llama.cpp takes where a file does not say.
constexpr std::string_view kDefault[] = {
    R"([\p{P}\$\+<=>\^~\|]+)",
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", R"(\p{N}+)",
    R"([0-9][0-9][0-9])"};

struct NamedSplitter {
  std::string_view name;
  Splitter splitter;
};
constexpr NamedSplitter kSplitters[] = {
    {"default", {.patterns = {kDefault[0], kDefault[1], kDefault[2], kDefault[3]}}},
    {"gpt-2", {}},
    {"smollm", {.patterns = {}, .digits = true}},
    {"codeshell", {.patterns = {}, .digits = true}},
    {"llama-bpe", {.patterns = {kThreeDigits}, .whole_words = true, .starts = true}},
    {"llama3", {.patterns = {kThreeDigits}, .whole_words = true, .starts = true}},
    {"llama-v3", {.patterns = {kThreeDigits}, .whole_words = true, .starts = true}},
    {"qwen2", {.patterns = {kOneDigit}, .nfc = true}},
    {"deepseek-r1-qwen", {.patterns = {kOneDigit}, .nfc = true}},
};

// Texts of tokens that end an answer although the file names only one.
constexpr std::string_view kEnds[] = {"<|im_end|>",    "<|eot_id|>",      "<|eom_id|>",
                                      "<|endoftext|>", "<|end_of_text|>", "<|end|>",
                                      "</s>",          "<end_of_turn>"};

class TokenizerReader {
 public:
  TokenizerReader(const gguf::File& file, uint32_t vocabulary)
      : file_(file), vocabulary_(vocabulary) {}

  Result<TokenizerFiles> read() {
    PTERO_ASSIGN_OR_RETURN(out_.chat_template, file_.text("tokenizer.chat_template"));
    PTERO_ASSIGN_OR_RETURN(out_.bos, id_at("tokenizer.ggml.bos_token_id"));
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                            "tokenizer.ggml.eom_token_id"}) {
      PTERO_ASSIGN_OR_RETURN(const auto id, id_at(key));
      add_end(id);
    }
    PTERO_ASSIGN_OR_RETURN(const auto model, file_.text("tokenizer.ggml.model"));
    PTERO_RETURN_IF_ERROR(read_tokens());
    if (!model || tokens_.empty()) {
      out_.missing = "The GGUF file holds no tokenizer.";
      return std::move(out_);
    }
    for (const std::string_view text : kEnds) {
      const auto found = std::ranges::find(tokens_, text);
      const auto id = static_cast<size_t>(found - tokens_.begin());
      if (found != tokens_.end() && type_of(id) == control) {
        add_end(static_cast<uint32_t>(id));
      }
    }
    if (*model == "gpt2") {
      PTERO_RETURN_IF_ERROR(write_byte_level());
    } else if (*model == "llama") {
      PTERO_RETURN_IF_ERROR(write_sentencepiece());
    } else {
      out_.missing = fmt::format(
          "The tokenizer is of the kind {:?} (tokenizer.ggml.model), which cannot be converted.",
          *model);
    }
    write_config();
    return std::move(out_);
  }

 private:
  Result<std::optional<uint32_t>> id_at(std::string_view key) const {
    PTERO_ASSIGN_OR_RETURN(const auto id, file_.whole_number(key));
    if (!id || *id == UINT32_MAX) {  // some writers say "none" so
      return std::optional<uint32_t>();
    }
    PTERO_REJECT_IF(*id >= vocabulary_, invalid_program,
                    "The value of {} ({}) is not among the {} tokens.", key, *id, vocabulary_);
    return std::optional(static_cast<uint32_t>(*id));
  }

  void add_end(std::optional<uint32_t> id) {
    if (id && std::ranges::find(out_.ends, *id) == out_.ends.end()) {
      out_.ends.push_back(*id);
    }
  }

  int64_t type_of(size_t id) const { return types_.empty() ? int64_t{normal} : types_[id]; }

  Status read_tokens() {
    PTERO_ASSIGN_OR_RETURN(const gguf::Array* tokens,
                           file_.array("tokenizer.ggml.tokens", gguf::ValueType::string));
    if (tokens == nullptr) {
      return ok_status();
    }
    PTERO_REJECT_IF(tokens->count > vocabulary_, invalid_program,
                    "The number of tokens ({}) exceeds the rows of token_embd.weight ({}).",
                    tokens->count, vocabulary_);
    std::unordered_map<std::string, size_t> ids;
    PTERO_RETURN_IF_ERROR(gguf::for_each_string(*tokens, [&](std::string_view text) -> Status {
      const auto [known, is_new] = ids.emplace(std::string(text), tokens_.size());
      PTERO_REJECT_IF(!is_new, invalid_program, "The tokens {} and {} are both {:?}.",
                      known->second, tokens_.size(), text);
      tokens_.emplace_back(text);
      return ok_status();
    }));
    PTERO_ASSIGN_OR_RETURN(const gguf::Array* types,
                           file_.array("tokenizer.ggml.token_type", gguf::ValueType::int32));
    if (types != nullptr) {
      PTERO_REJECT_IF(types->count != tokens->count, invalid_program,
                      "The numbers of tokens ({}) and of their types ({}) differ.", tokens->count,
                      types->count);
      PTERO_ASSIGN_OR_RETURN(types_, gguf::integers_of(*types));
    }
    return ok_status();
  }

  void write_added_tokens(std::string& json) const {
    json += R"("added_tokens":[)";
    const char* comma = "";
    for (size_t id = 0; id < tokens_.size(); ++id) {
      const int64_t type = type_of(id);
      if (type != control && type != user_defined && type != unknown) {
        continue;
      }
      json += fmt::format(R"({}{{"id":{},"content":)", comma, id);
      append_json(json, tokens_[id]);
      json += fmt::format(R"(,"single_word":false,"lstrip":false,"rstrip":false,)"
                          R"("normalized":false,"special":{}}})",
                          type != user_defined);
      comma = ",";
    }
    json += "],";
  }

  // What stands before a text.
  void write_post_processor(std::string& json) const {
    if (!add_bos_ || !out_.bos) {
      json += R"("post_processor":null,)";
      return;
    }
    std::string bos;
    append_json(bos, tokens_[*out_.bos]);
    const std::string start = fmt::format(R"({{"SpecialToken":{{"id":{},"type_id":0}}}})", bos);
    json +=
        fmt::format(R"("post_processor":{{"type":"TemplateProcessing","single":[{0},)"
                    R"({{"Sequence":{{"id":"A","type_id":0}}}}],"pair":[{0},)"
                    R"({{"Sequence":{{"id":"A","type_id":0}}}},{0},)"
                    R"({{"Sequence":{{"id":"B","type_id":1}}}}],"special_tokens":{{{1}:{{"id":{1},)"
                    R"("ids":[{2}],"tokens":[{1}]}}}}}},)",
                    start, bos, *out_.bos);
  }

  void write_vocabulary(std::string& json) const {
    json += R"("vocab":{)";
    for (size_t id = 0; id < tokens_.size(); ++id) {
      json += id == 0 ? "" : ",";
      append_json(json, tokens_[id]);
      json += fmt::format(":{}", id);
    }
    json += "},";
  }

  static void append_merge(std::string& json, std::string_view left, std::string_view right) {
    json += json.back() == '[' ? "[" : ",[";
    append_json(json, left);
    json += ',';
    append_json(json, right);
    json += ']';
  }

  Status read_add_bos(bool otherwise) {
    PTERO_ASSIGN_OR_RETURN(const auto add, file_.boolean("tokenizer.ggml.add_bos_token"));
    add_bos_ = add.value_or(otherwise);
    PTERO_REJECT_IF(add_bos_ && out_.bos && *out_.bos >= tokens_.size(), invalid_program,
                    "The BOS token ({}) is not among the {} tokens with a text.", *out_.bos,
                    tokens_.size());
    return ok_status();
  }

  Status write_byte_level() {
    PTERO_ASSIGN_OR_RETURN(const auto pre, file_.text("tokenizer.ggml.pre"));
    if (!pre) {
      out_.note =
          "The GGUF file does not say how its tokenizer splits text (tokenizer.ggml.pre), so the "
          "default is used; the model's own may differ.";
    }
    const std::string name = pre.value_or("default");
    const auto* found = std::ranges::find(kSplitters, name, &NamedSplitter::name);
    if (found == std::end(kSplitters)) {
      PTERO_RETURN_IF_ERROR(read_add_bos(false));
      out_.missing = fmt::format(
          "The tokenizer splits text as {:?} does (tokenizer.ggml.pre), which cannot be converted.",
          name);
      return ok_status();
    }
    const Splitter& splitter = found->splitter;
    PTERO_RETURN_IF_ERROR(read_add_bos(splitter.starts));
    PTERO_ASSIGN_OR_RETURN(const gguf::Array* merges,
                           file_.array("tokenizer.ggml.merges", gguf::ValueType::string));
    PTERO_REJECT_IF(merges == nullptr, invalid_program,
                    "The key tokenizer.ggml.merges is missing.");
    std::string json = R"({"version":"1.0","truncation":null,"padding":null,)";
    write_added_tokens(json);
    json += splitter.nfc ? R"("normalizer":{"type":"NFC"},)" : R"("normalizer":null,)";
    json += R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)";
    if (splitter.digits) {
      json += R"({"type":"Digits","individual_digits":true},)";
    }
    for (const std::string_view pattern : splitter.patterns) {
      if (!pattern.empty()) {
        json += R"({"type":"Split","pattern":{"Regex":)";
        append_json(json, pattern);
        json += R"(},"behavior":"Isolated","invert":false},)";
      }
    }
    json += fmt::format(R"({{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
                        R"("use_regex":{}}}]}},)",
                        splitter.patterns[0].empty());
    write_post_processor(json);
    json += R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,)"
            R"("use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,)"
            R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
            R"("byte_fallback":false,)";
    json += fmt::format(R"("ignore_merges":{},)", splitter.whole_words);
    write_vocabulary(json);
    json += R"("merges":[)";
    uint64_t index = 0;
    PTERO_RETURN_IF_ERROR(gguf::for_each_string(*merges, [&](std::string_view merge) -> Status {
      const size_t space = merge.find(' ', 1);
      PTERO_REJECT_IF(space == std::string_view::npos || space + 1 == merge.size(), invalid_program,
                      "Merge {} ({:?}) is no pair.", index, merge);
      append_merge(json, merge.substr(0, space), merge.substr(space + 1));
      ++index;
      return ok_status();
    }));
    json += "]}}";
    out_.tokenizer = std::move(json);
    return ok_status();
  }

  // Scores instead of merges, bytes as fallback, spaces as U+2581.
  Status write_sentencepiece() {
    PTERO_RETURN_IF_ERROR(read_add_bos(true));
    PTERO_ASSIGN_OR_RETURN(const auto prefix, file_.boolean("tokenizer.ggml.add_space_prefix"));
    PTERO_ASSIGN_OR_RETURN(const gguf::Array* scores,
                           file_.array("tokenizer.ggml.scores", gguf::ValueType::float32));
    PTERO_REJECT_IF(scores == nullptr || scores->count != tokens_.size(), invalid_program,
                    "The number of scores ({}) is not that of the tokens ({}).",
                    scores == nullptr ? 0 : scores->count, tokens_.size());
    PTERO_ASSIGN_OR_RETURN(const std::vector<float> values, gguf::floats_of(*scores));
    const auto nan = std::ranges::find_if(values, [](float x) { return std::isnan(x); });
    PTERO_REJECT_IF(nan != values.end(), invalid_program, "The score of token {} is no number.",
                    nan - values.begin());
    std::string json = R"({"version":"1.0","truncation":null,"padding":null,)";
    write_added_tokens(json);
    const bool prepend = prefix.value_or(true);
    json += R"("normalizer":{"type":"Sequence","normalizers":[)";
    json += prepend ? "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}," : "";
    json += "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}]},";
    json += R"("pre_tokenizer":null,)";
    write_post_processor(json);
    json +=
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":"
        "{\"String\":\"\u2581\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},"
        "{\"type\":\"Fuse\"}";
    json += prepend ? R"(,{"type":"Strip","content":" ","start":1,"stop":0}]},)" : "]},";
    json += R"("model":{"type":"BPE","dropout":null,"unk_token":)";
    PTERO_ASSIGN_OR_RETURN(const auto unk, id_at("tokenizer.ggml.unknown_token_id"));
    if (unk && *unk < tokens_.size()) {
      append_json(json, tokens_[*unk]);
    } else {
      json += "null";
    }
    json += R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":true,)"
            R"("byte_fallback":true,"ignore_merges":false,)";
    write_vocabulary(json);
    json += R"("merges":[)";
    for (const auto& [left, right] : merges_of_scores(tokens_, values)) {
      append_merge(json, left, right);
    }
    json += "]}}";
    out_.tokenizer = std::move(json);
    return ok_status();
  }

  void write_config() {
    std::string& json = out_.config;
    json = "{";
    const auto token = [&](std::string_view key, std::optional<uint32_t> id) {
      append_json(json, key);
      json += ':';
      if (id && *id < tokens_.size()) {
        append_json(json, tokens_[*id]);
      } else {
        json += "null";
      }
      json += ',';
    };
    token("bos_token", out_.bos);
    token("eos_token", out_.ends.empty() ? std::optional<uint32_t>() : std::optional(out_.ends[0]));
    json += fmt::format(R"("add_bos_token":{}}})", add_bos_);
  }

  const gguf::File& file_;
  uint32_t vocabulary_;
  TokenizerFiles out_;
  std::vector<std::string> tokens_;
  std::vector<int64_t> types_;  // empty: all are normal
  bool add_bos_ = false;
};

}  // namespace

void append_json(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

Result<TokenizerFiles> read_tokenizer(const gguf::File& file, uint32_t vocabulary) {
  return TokenizerReader(file, vocabulary).read();
}

}  // namespace ptero::convert
