// SPDX-License-Identifier: BSD-3-Clause
// Damaged and hostile tokenizer files: refused with a sentence, never a crash.
#include <doctest/doctest.h>

#include "text/testing.h"
#include "text/tokenizer.h"

namespace ptero::text {
namespace {

std::string model(std::string_view vocab, std::string_view merges, std::string_view more = "") {
  return fmt::format(R"({{"model":{{"type":"BPE","vocab":{},"merges":{}}}{}}})", vocab, merges,
                     more);
}

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += text;
  }
  return out;
}

TEST_CASE("hostile: every wrong file has its sentence") {
  const struct {
    std::string file;
    std::string_view sentence;
  } kCases[] = {
      {"", "Tokenizer file is neither JSON nor tiktoken ranks nor a whole SentencePiece model."},
      {"hello",
       "Tokenizer file is neither JSON nor tiktoken ranks nor a whole SentencePiece model."},
      {"{", "Tokenizer file is not valid JSON at byte 1 of 1."},
      {R"({"model":{"vocab":{"a)", "Tokenizer file is not valid JSON at byte 21 of 21."},
      {R"({"a":)" + repeated("[", 100'000), "Tokenizer file nests deeper than the limit (64)."},
      {"{}", "Member (model) of the tokenizer file is null instead of an object."},
      {R"({"model":7})",
       "Member (model) of the tokenizer file is an integer instead of an object."},
      {R"({"model":{"type":"Magic","vocab":{}}})",
       "Model (Magic) of the tokenizer is not supported."},
      {model("7", "[]"),
       "Member (vocab) of the tokenizer's model is an integer instead of an object."},
      {model(R"({"a":-1})", "[]"),
       "An id in the tokenizer's vocab is -1 instead of a token's number."},
      {model(R"({"a":"b"})", "[]"),
       "An id in the tokenizer's vocab is a string instead of a token's number."},
      {model(R"({"a":99999999})", "[]"), "Id (99999999) of token (a) exceeds the limit (8000000)."},
      {model(R"({"a":7000000})", "[]"),
       "Id (7000000) of token (a) is far beyond the number of tokens (0)."},
      {model(R"({"a":0,"b":0})", "[]"), "Id (0) is of two tokens (a and b)."},
      {model("{}", "7"),
       "Member (merges) of the tokenizer's model is an integer instead of an array."},
      {model(R"({"a":0})", R"(["a"])"), "A merge in the tokenizer's model is not two tokens."},
      {model(R"({"a":0})", R"([["a",1]])"), "A merge in the tokenizer's model is not two tokens."},
      {model(R"({"a":0,"b":1})", R"(["a b"])"),
       "Merge 0 (a and b) of the tokenizer's model names a token that is not in the vocabulary."},
      {model("{}", "[]", R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"}})"),
       "Pattern ((a) is not a regular expression that we know: missing closing parenthesis."},
      {model("{}", "[]", R"(,"pre_tokenizer":{"type":"Split"})"),
       "Member (pattern) of the tokenizer's pre_tokenizer is neither {\"String\": ...} nor "
       "{\"Regex\": ...}."},
      {model("{}", "[]",
             R"(,"pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + repeated("(", 5000) +
                 R"("}})"),
       "parentheses are too deeply nested"},
      {model("{}", "[]", R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"})"),
       "Normalisation table (3 bytes) ends within its header."},
      {model("{}", "[]",
             R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="})"),
       "Trie of the normalisation table (4294967295 bytes) does not fit into the table (4)."},
      {model("{}", "[]", R"(,"normalizer":{"type":"Precompiled","precompiled_charsmap":"*"})"),
       "Text (*) of 1 bytes is not base64."},
      {model("{}", "[]",
             R"(,"normalizer":{"type":"Sequence","normalizers":[)" +
                 repeated(R"({"type":"NFC"},)", 200) + R"({"type":"NFC"}]})"),
       "The tokenizer's normalizer has more steps than the limit (128)."},
      {model("{}", "[]", R"(,"decoder":{"type":"CTC"})"),
       "Decoder (CTC) of the tokenizer is not supported."},
      {model("{}", "[]", R"(,"decoder":{"type":"Strip","content":" ","start":-1,"stop":0})"),
       "Step Strip of the tokenizer's decoder has content ( ), start (-1), stop (0)."},
      {model("{}", "[]", R"(,"added_tokens":[{"content":"x"}])"),
       "An id in the tokenizer's added_tokens is null instead of a token's number."},
      {model("{}", "[]",
             R"(,"added_tokens":[{"id":1,"content":")" + repeated("x", 5000) + R"("}])"),
       "Added token 1 is longer (5000 bytes) than the limit (4096)."},
      {R"({"model":{"type":"Unigram","vocab":[["a",1e999]]}})", "Tokenizer file is not valid JSON"},
      {R"({"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":5}})",
       "Unknown token (5) of the tokenizer's model is not in the vocabulary (1 tokens)."},
      {R"({"config":{"pattern":"a","default_vocab_size":-5},"vocab":[]})",
       "The tokenizer's config has -5 tokens, 0 of them special; the limit is 8000000."},
      {"YQ== 0\nYQ== 1\n", "Token of rank 1 is in the file twice."},
      {"YQ== 0\nYg== 0\n", "Rank (0) is in the file twice."},
      {"YQ== 0\nYg==\n", "Line 2 of the tokenizer file is not a token in base64 and its rank."},
      {"YQ== 0\nYg== 99999999999\n", "Rank (99999999999) of a token exceeds the limit"},
      {"YQ== 0\n= 1\n", "Token of rank 1 has 0 bytes; 1 to 4096 are possible."},
      {sentencepiece_file({{"a", 0, 1}, {"a", 0, 1}}, true),
       "Piece 1 (a) of the SentencePiece model is there twice."},
      {sentencepiece_file({{"\xFF", 0, 1}}, true),
       "Piece 0 of the SentencePiece model is not UTF-8."},
      {sentencepiece_file({{"", 0, 1}}, true),
       "Piece 0 of the SentencePiece model has 0 bytes; 1 to 4096 are possible."},
  };
  for (const auto& wrong : kCases) {
    CAPTURE(wrong.file.substr(0, 200));
    const auto tokenizer = Tokenizer::from_bytes(wrong.file);
    REQUIRE(!tokenizer.ok());
    CAPTURE(tokenizer.error().message());
    CHECK(tokenizer.error().message().find(wrong.sentence) != std::string::npos);
  }
}

TEST_CASE("hostile: a file cut off anywhere is refused or reads") {
  const std::string files[] = {
      sentencepiece_file({{"<unk>", 0, 2}, {"ab", -1, 1}, {"a", -2, 1}, {"b", -3, 4}}, true),
      model(R"({"a":0,"b":1,"ab":2})", R"(["a b"])", R"(,"decoder":{"type":"Fuse"})"),
      tiktoken_file({"ab"})};
  for (const std::string& file : files) {
    for (size_t size = 0; size < file.size(); ++size) {
      const auto tokenizer = Tokenizer::from_bytes(file.substr(0, size));
      CHECK((tokenizer.ok() || !tokenizer.error().message().empty()));
      if (tokenizer.ok()) {
        CHECK(tokenizer->encode("abab").ok());
      }
    }
  }
}

}  // namespace
}  // namespace ptero::text
