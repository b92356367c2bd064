// SPDX-License-Identifier: BSD-3-Clause
#include "convert/tokenizer.h"

#include <cmath>

#include <doctest/doctest.h>

#include "convert/sentencepiece.h"
#include "gguf/reader.h"
#include "gguf/test_file.h"

namespace ptero::convert {
namespace {

using gguf::ValueType;
using gguf::test::TestFile;

Result<TokenizerFiles> read(const TestFile& made, uint32_t vocabulary = 8) {
  PTERO_ASSIGN_OR_RETURN(const gguf::File file, gguf::read_gguf(made.range()));
  return read_tokenizer(file, vocabulary);
}

TokenizerFiles must_read(const TestFile& made) {
  const Result<TokenizerFiles> files = read(made);
  REQUIRE_MESSAGE(files.ok(), files.error().to_string());
  return *files;
}

bool contains(const std::optional<std::string>& text, std::string_view part) {
  return text && text->find(part) != std::string::npos;
}

TestFile byte_level(const char* pre) {
  TestFile file;
  file.text("tokenizer.ggml.model", "gpt2");
  file.text("tokenizer.ggml.pre", pre);
  file.strings("tokenizer.ggml.tokens", {"<|endoftext|>", "a", "\"", "\u0120", "\\", "a\"", "<x>"});
  file.numbers<int32_t>("tokenizer.ggml.token_type", ValueType::int32, {3, 1, 1, 1, 1, 1, 4});
  file.strings("tokenizer.ggml.merges", {"a \"", "\u0120 a"});
  file.u32("tokenizer.ggml.bos_token_id", 1);
  file.u32("tokenizer.ggml.eos_token_id", 0);
  return file;
}

TEST_CASE("a byte-level tokenizer, whole") {
  TestFile made = byte_level("smollm");
  made.text("tokenizer.chat_template", "{{ messages }}");
  const TokenizerFiles files = must_read(made);
  CHECK(*files.tokenizer ==
        R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)"
        R"({"id":0,"content":"<|endoftext|>","single_word":false,"lstrip":false,"rstrip":false,)"
        R"("normalized":false,"special":true},)"
        R"({"id":6,"content":"<x>","single_word":false,"lstrip":false,"rstrip":false,)"
        R"("normalized":false,"special":false}],"normalizer":null,)"
        R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)"
        R"({"type":"Digits","individual_digits":true},)"
        R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}]},)"
        R"("post_processor":null,)"
        R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,)"
        R"("use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,)"
        R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
        R"("byte_fallback":false,"ignore_merges":false,)"
        "\"vocab\":{\"<|endoftext|>\":0,\"a\":1,\"\\\"\":2,\"\u0120\":3,\"\\\\\":4,\"a\\\"\":5,"
        "\"<x>\":6},\"merges\":[[\"a\",\"\\\"\"],[\"\u0120\",\"a\"]]}}");
  CHECK(files.config == R"({"bos_token":"a","eos_token":"<|endoftext|>","add_bos_token":false})");
  CHECK(*files.chat_template == "{{ messages }}");
  CHECK(files.bos == 1u);
  CHECK(files.ends == std::vector<uint32_t>{0});
}

TEST_CASE("what the splitters differ in") {
  const TokenizerFiles llama = must_read(byte_level("llama-bpe"));
  CHECK(contains(llama.tokenizer, R"(\\p{N}{1,3}|)"));
  CHECK(contains(llama.tokenizer, R"("use_regex":false}]})"));
  CHECK(contains(llama.tokenizer, R"("ignore_merges":true)"));
  CHECK(contains(llama.tokenizer, R"("post_processor":{"type":"TemplateProcessing")"));
  CHECK(contains(llama.tokenizer, R"("special_tokens":{"a":{"id":"a","ids":[1],"tokens":["a"]}})"));
  CHECK(contains(llama.config, R"("add_bos_token":true)"));
  TestFile without = byte_level("llama-bpe");
  without.boolean("tokenizer.ggml.add_bos_token", false);
  CHECK(contains(must_read(without).tokenizer, R"("post_processor":null)"));
  const TokenizerFiles qwen = must_read(byte_level("qwen2"));
  CHECK(contains(qwen.tokenizer, R"("normalizer":{"type":"NFC"})"));
  CHECK(contains(qwen.tokenizer, R"(+|\\p{N}| ?)"));
  CHECK(contains(qwen.tokenizer, R"("post_processor":null)"));
}

TEST_CASE("a file that does not say how text is split gets the default, and a note") {
  TestFile made = byte_level("smollm");
  made.keys.erase(made.keys.begin() + 1);
  const TokenizerFiles files = must_read(made);
  CHECK(contains(files.tokenizer, R"("Regex":"[0-9][0-9][0-9]"})"));
  CHECK(files.note.starts_with("The GGUF file does not say how its tokenizer splits text"));
  CHECK(must_read(byte_level("default")).tokenizer == files.tokenizer);
  CHECK(must_read(byte_level("default")).note.empty());
}

TEST_CASE("an unknown splitter leaves the tokenizer out and says so") {
  const TokenizerFiles files = must_read(byte_level("poro-chat"));
  CHECK(!files.tokenizer);
  CHECK(files.missing ==
        "The tokenizer splits text as \"poro-chat\" does (tokenizer.ggml.pre), which cannot be "
        "converted.");
  CHECK(files.ends == std::vector<uint32_t>{0});
  CHECK(must_read(TestFile()).missing == "The GGUF file holds no tokenizer.");
}

TestFile sentencepiece() {
  TestFile file;
  file.text("tokenizer.ggml.model", "llama");
  file.strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x0A>", "a", "b", "ab", "aab"});
  file.numbers<int32_t>("tokenizer.ggml.token_type", ValueType::int32, {2, 3, 3, 6, 1, 1, 1, 1});
  file.numbers<float>("tokenizer.ggml.scores", ValueType::float32, {0, 0, 0, 0, -3, -4, -1, -2});
  file.u32("tokenizer.ggml.bos_token_id", 1);
  file.u32("tokenizer.ggml.eos_token_id", 2);
  file.u32("tokenizer.ggml.unknown_token_id", 0);
  return file;
}

TEST_CASE("a SentencePiece tokenizer") {
  const TokenizerFiles files = must_read(sentencepiece());
  CHECK(contains(files.tokenizer, R"("byte_fallback":true)"));
  CHECK(contains(files.tokenizer, R"("unk_token":"<unk>")"));
  CHECK(contains(files.tokenizer, "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}"));
  CHECK(contains(files.tokenizer, R"("merges":[["a","b"],["a","ab"]]})"));
  CHECK(contains(files.tokenizer, R"("ids":[1])"));
  CHECK(files.config == R"({"bos_token":"<s>","eos_token":"</s>","add_bos_token":true})");
  TestFile without = sentencepiece();
  without.boolean("tokenizer.ggml.add_space_prefix", false);
  CHECK(!contains(must_read(without).tokenizer, "Prepend"));
  CHECK(!contains(must_read(without).tokenizer, "Strip"));
}

TEST_CASE("merges by score, whole characters only") {
  const std::vector<std::string> tokens = {"\u00e9",  "\u00e9\u00e9", "x",
                                           "\u00e9x", "\xc3",         "\xa9"};
  const std::vector<float> scores = {-1, -5, -1, -2, 0, 0};
  const auto merges = merges_of_scores(tokens, scores);
  REQUIRE(merges.size() == 2);
  CHECK(merges[0] == std::pair<std::string_view, std::string_view>("\u00e9", "x"));
  CHECK(merges[1] == std::pair<std::string_view, std::string_view>("\u00e9", "\u00e9"));
}

TEST_CASE("ends of answers, by key and by text") {
  TestFile made;
  made.text("tokenizer.ggml.model", "gpt2");
  made.text("tokenizer.ggml.pre", "qwen2");
  made.strings("tokenizer.ggml.tokens", {"a", "<|endoftext|>", "<|im_end|>", "</s>"});
  made.numbers<int32_t>("tokenizer.ggml.token_type", ValueType::int32, {1, 3, 3, 1});
  made.strings("tokenizer.ggml.merges", {});
  made.u32("tokenizer.ggml.eos_token_id", 2);
  made.u32("tokenizer.ggml.eot_token_id", 7);
  // A plain token with such a text is text.
  CHECK(must_read(made).ends == std::vector<uint32_t>{2, 7, 1});
}

TEST_CASE("contradictions") {
  const auto message = [](const TestFile& made) {
    const Result<TokenizerFiles> files = read(made);
    REQUIRE(!files.ok());
    CHECK(files.error().code() == ErrorCode::invalid_program);
    return files.error().message();
  };
  TestFile made = byte_level("gpt-2");
  made.u32("tokenizer.ggml.eot_token_id", 8);
  CHECK(message(made) == "The value of tokenizer.ggml.eot_token_id (8) is not among the 8 tokens.");
  made = byte_level("gpt-2");
  made.keys.pop_back();
  made.number("tokenizer.ggml.eos_token_id", ValueType::int32, int32_t{-2});
  CHECK(message(made) == "The value of tokenizer.ggml.eos_token_id (-2) is negative.");
  CHECK(read(byte_level("gpt-2"), 6).error().message() ==
        "The number of tokens (7) exceeds the rows of token_embd.weight (6).");
  made = TestFile();
  made.text("tokenizer.ggml.model", "gpt2");
  made.strings("tokenizer.ggml.tokens", {"a", "b", "a"});
  CHECK(message(made) == "The tokens 0 and 2 are both \"a\".");
  made = TestFile();
  made.text("tokenizer.ggml.model", "gpt2");
  made.strings("tokenizer.ggml.tokens", {"a", "b"});
  made.numbers<int32_t>("tokenizer.ggml.token_type", ValueType::int32, {1});
  CHECK(message(made) == "The numbers of tokens (2) and of their types (1) differ.");
  made = TestFile();
  made.text("tokenizer.ggml.model", "gpt2");
  made.text("tokenizer.ggml.pre", "gpt-2");
  made.strings("tokenizer.ggml.tokens", {"a", "b"});
  CHECK(message(made) == "The key tokenizer.ggml.merges is missing.");
  made.strings("tokenizer.ggml.merges", {"a b", "ab"});
  CHECK(message(made) == "Merge 1 (\"ab\") is no pair.");
  made = sentencepiece();
  made.keys.erase(made.keys.begin() + 3);
  CHECK(message(made) == "The number of scores (0) is not that of the tokens (8).");
  made.numbers<float>("tokenizer.ggml.scores", ValueType::float32, {0, 0, 0, NAN, 0, 0, 0, 0});
  CHECK(message(made) == "The score of token 3 is no number.");
}

TEST_CASE("JSON strings") {
  std::string out;
  append_json(out, "a\"\\\n\x01\u00e9");
  CHECK(out == "\"a\\\"\\\\\\u000a\\u0001\u00e9\"");
}

}  // namespace
}  // namespace ptero::convert
