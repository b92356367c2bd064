// SPDX-License-Identifier: BSD-3-Clause
#include "text/tokenizer.h"

#include <doctest/doctest.h>

#include "text/byte_level.h"
#include "text/testing.h"

namespace ptero::text {
namespace {

using Ids = std::vector<TokenId>;

Ids encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options = {}) {
  const auto ids = tokenizer.encode(text, options);
  REQUIRE(ids.ok());
  return *ids;
}

// What the stream gives piece by piece; checks what its contract promises.
std::vector<std::string> stream(const Tokenizer& tokenizer, const Ids& ids) {
  StreamDecoder decoder(tokenizer);
  std::vector<std::string> pieces;
  std::string whole;
  for (const TokenId id : ids) {
    pieces.push_back(decoder.push(id));
    whole += pieces.back();
  }
  pieces.push_back(decoder.finish());
  whole += pieces.back();
  CHECK(whole == tokenizer.decode(ids));
  return pieces;
}

// 256 bytes in order, then what `more` says.
std::string byte_vocabulary(std::string_view more) {
  std::string vocab;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string_view name = byte_spelling(static_cast<uint8_t>(byte));
    vocab += fmt::format("\"{}{}\":{},", name == "\"" || name == "\\" ? "\\" : "", name, byte);
  }
  return vocab.append(more);
}

std::string byte_level_json(std::string_view more = "") {
  return fmt::format(
      R"({{"model":{{"type":"BPE","vocab":{{{}}},"merges":["h e","l l","he ll",["hell","o"],"Ġ w"]}},)"
      R"("pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false}},)"
      R"("decoder":{{"type":"ByteLevel"}},)"
      R"("added_tokens":[{{"id":300,"content":"<|im_end|>","special":true}},)"
      R"({{"id":301,"content":"<s>","special":true}},{{"id":302,"content":"tool","special":false}}]{}}})",
      byte_vocabulary(R"("he":256,"ll":257,"hell":258,"hello":259,"Ġw":260)"), more);
}

TEST_CASE("tokenizer: byte-level BPE merges by rank, and text comes back") {
  const auto tokenizer = Tokenizer::from_json(byte_level_json());
  REQUIRE(tokenizer.ok());
  CHECK(encode(*tokenizer, "hello world") == Ids{259, 260, 'o', 'r', 'l', 'd'});
  CHECK(encode(*tokenizer, "").empty());
  CHECK(tokenizer->decode({259, 260, 'o', 'r', 'l', 'd'}) == "hello world");
  CHECK(tokenizer->vocab_size() == 303);
  CHECK(tokenizer->token(260) == "Ġw");
  CHECK(tokenizer->id("hell") == 258);
  CHECK(!tokenizer->id("nothing"));
  CHECK(!tokenizer->token(299));
  CHECK(!tokenizer->token(1u << 31));
}

TEST_CASE("tokenizer: the earlier merge comes first, then the one on the left") {
  const auto with = [](std::string_view merges) {
    const auto tokenizer = Tokenizer::from_json(fmt::format(
        R"({{"model":{{"type":"BPE","vocab":{{"a":0,"b":1,"c":2,"ab":3,"bc":4,"aa":5}},"merges":[{}]}}}})",
        merges));
    REQUIRE(tokenizer.ok());
    return *tokenizer;
  };
  CHECK(encode(with(R"("a b","b c","a a")"), "abc") == Ids{3, 2});
  CHECK(encode(with(R"("b c","a b","a a")"), "abc") == Ids{0, 4});
  CHECK(encode(with(R"("a a")"), "aaaaa") == Ids{5, 5, 0});
  CHECK(encode(with(R"("a b","a a")"), "aaab") == Ids{5, 3});
}

TEST_CASE("tokenizer: special tokens in text are tokens only if asked for") {
  const auto tokenizer = Tokenizer::from_json(byte_level_json());
  REQUIRE(tokenizer.ok());
  CHECK(encode(*tokenizer, "he<|im_end|>he") == Ids{256, 300, 256});
  const Ids plain = encode(*tokenizer, "<|im_end|>tool", {.parse_special = false});
  CHECK(plain.size() == 11);
  CHECK(plain.back() == 302);  // added, but not special
  CHECK(tokenizer->decode(plain) == "<|im_end|>tool");
  CHECK(tokenizer->decode({256, 300, 256}, {.skip_special = true}) == "hehe");
  CHECK(tokenizer->is_special(300));
  CHECK(!tokenizer->is_special(302));
  CHECK(!tokenizer->begin_id());
  CHECK(tokenizer->end_ids() == Ids{300});
}

TEST_CASE("tokenizer: what the post-processor adds") {
  const auto tokenizer = Tokenizer::from_json(byte_level_json(
      R"(,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>",)"
      R"("type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)"
      R"("special_tokens":{"<s>":{"id":"<s>","ids":[301],"tokens":["<s>"]}}})"));
  REQUIRE(tokenizer.ok());
  CHECK(encode(*tokenizer, "he") == Ids{301, 256});
  CHECK(encode(*tokenizer, "he", {.add_special = false}) == Ids{256});
  CHECK(tokenizer->begin_id() == 301);
}

TEST_CASE("tokenizer: a stream gives whole characters and loses none") {
  const auto tokenizer = Tokenizer::from_json(byte_level_json());
  REQUIRE(tokenizer.ok());
  const Ids emoji = encode(*tokenizer, "a😀é");
  CHECK(emoji.size() == 7);
  CHECK(stream(*tokenizer, emoji) == std::vector<std::string>{"a", "", "", "", "😀", "", "é", ""});
  SUBCASE("what stays incomplete is U+FFFD at the end") {
    CHECK(stream(*tokenizer, {0xF0, 0x9F}) == std::vector<std::string>{"", "", "\uFFFD"});
    CHECK(stream(*tokenizer, {0xF0, 'a', 0xFF}) ==
          std::vector<std::string>{"", "\uFFFDa", "\uFFFD", ""});
  }
  SUBCASE("ids without a token are no text") {
    CHECK(stream(*tokenizer, {'a', 299, 1u << 31}) == std::vector<std::string>{"a", "", "", ""});
  }
  SUBCASE("a decoder starts anew after its end") {
    StreamDecoder decoder(*tokenizer);
    CHECK(decoder.push(0xF0).empty());
    CHECK(decoder.finish() == "\uFFFD");
    CHECK(decoder.push('b') == "b");
  }
}

TEST_CASE("tokenizer: bytes that are not UTF-8 become U+FFFD") {
  const auto tokenizer = Tokenizer::from_json(byte_level_json());
  REQUIRE(tokenizer.ok());
  CHECK(tokenizer->decode(encode(*tokenizer, "a\xFF\xE4\xBD b\xF0\x9F")) ==
        "a\uFFFD\uFFFD b\uFFFD");
}

std::string llama_json() {
  return R"({"model":{"type":"BPE","vocab":{"<unk>":0,"<0xE4>":1,"<0xBD>":2,"<0xA0>":3,"▁":4,"a":5,)"
         R"("▁a":6},"merges":["▁ a"],"unk_token":"<unk>","fuse_unk":true,"byte_fallback":true},)"
         R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
         R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]},)"
         R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},)"
         R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},)"
         R"({"type":"Strip","content":" ","start":1,"stop":0}]}})";
}

TEST_CASE("tokenizer: bytes stand for characters without a token") {
  const auto tokenizer = Tokenizer::from_json(llama_json());
  REQUIRE(tokenizer.ok());
  CHECK(encode(*tokenizer, "a a你") == Ids{6, 6, 1, 2, 3});
  CHECK(encode(*tokenizer, "éßa") == Ids{4, 0, 5});  // no bytes for these: one unknown token
  CHECK(stream(*tokenizer, {6, 6, 1, 2, 3}) ==
        std::vector<std::string>{"a", " a", "", "", "你", ""});
  CHECK(stream(*tokenizer, {1, 2, 5, 3}) ==
        std::vector<std::string>{"", "", "\uFFFD\uFFFDa", "\uFFFD", ""});
}

TEST_CASE("tokenizer: only two hexadecimal digits are a byte") {
  for (const std::string name : {"<0x-1>", "<0x+1>", "<0x 1>", "<0xG0>", "<0x1>", "<0x041>"}) {
    CAPTURE(name);
    std::string json = llama_json();
    json.replace(json.find("<0xE4>"), 6, name);
    const auto tokenizer = Tokenizer::from_json(json);
    REQUIRE(tokenizer.ok());
    CHECK(tokenizer->decode(Ids{5, 1, 5}) == "a" + name + "a");
  }
}

TEST_CASE("tokenizer: tiktoken ranks with a pattern of the caller") {
  const std::string file = tiktoken_file({"he", "ll", "hell", "hello"});
  const TiktokenOptions options{.pattern = R"(\p{L}+|\s+|.)",
                                .special_tokens = {{"<|end|>", 400}, {"<|begin|>", 401}},
                                .begin_token = "<|begin|>",
                                .end_tokens = {"<|end|>"}};
  const auto tokenizer = Tokenizer::from_tiktoken(file, options);
  REQUIRE(tokenizer.ok());
  CHECK(encode(*tokenizer, "hellhello<|end|>") == Ids{401, 258, 259, 400});
  CHECK(tokenizer->begin_id() == 401);
  CHECK(tokenizer->end_ids() == Ids{400});
  CHECK(tokenizer->decode({259, ' ', 400}) == "hello <|end|>");
  const auto guessed = Tokenizer::from_bytes(file);
  REQUIRE(!guessed.ok());
  CHECK(guessed.error().message() ==
        "Number of ranks (260) in the tiktoken file is of no model that we know; its pattern and "
        "special tokens have to be given.");
}

TEST_CASE("tokenizer: SentencePiece models") {
  for (const bool bpe : {false, true}) {
    CAPTURE(bpe);
    const auto tokenizer = Tokenizer::from_bytes(sentencepiece_file({{"<unk>", 0, 2},
                                                                     {"<s>", 0, 3},
                                                                     {"</s>", 0, 3},
                                                                     {"▁a", -1, 1},
                                                                     {"▁", -2, 1},
                                                                     {"a", -3, 1},
                                                                     {"b", -4, 1},
                                                                     {"xy", -0.5f, 4}},
                                                                    bpe));
    REQUIRE(tokenizer.ok());
    CHECK(encode(*tokenizer, "a  bxy") == Ids{1, 3, 4, 6, 7});
    CHECK(encode(*tokenizer, "<s>", {.add_special = false, .parse_special = false}) == Ids{4, 0});
    CHECK(encode(*tokenizer, "a</s>", {.add_special = false}) == Ids{3, 2});
    CHECK(stream(*tokenizer, {3, 4, 6, 0}) == std::vector<std::string>{"a", " ", "b", " ⁇ ", ""});
    CHECK(tokenizer->end_ids() == Ids{2});
  }
}

TEST_CASE("tokenizer: long words merge in bounded time") {
  const auto tokenizer = Tokenizer::from_json(byte_level_json());
  REQUIRE(tokenizer.ok());
  const std::string text(1'000'000, 'l');
  CHECK(encode(*tokenizer, text).size() == 500'000);
}

TEST_CASE("tokenizer: a pattern that takes forever is an error") {
  const TiktokenOptions options{.pattern = "(a+)+b|x", .special_tokens = {{"<|end|>", 400}}};
  const auto tokenizer = Tokenizer::from_tiktoken(tiktoken_file({}), options);
  REQUIRE(tokenizer.ok());
  const auto ids = tokenizer->encode(std::string(60, 'a'));
  REQUIRE(!ids.ok());
  CHECK(ids.error().code() == ErrorCode::invalid_argument);
  CHECK(ids.error().message().starts_with("Text (60 bytes) cannot be split at byte 0"));
}

TEST_CASE("tokenizer: a file that makes text explode is stopped") {
  std::string steps;
  for (int i = 0; i < 60; ++i) {
    steps += R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"},)";
  }
  steps.pop_back();
  const auto tokenizer = Tokenizer::from_json(
      R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"normalizer":{"type":"Sequence",)"
      R"("normalizers":[)" +
      steps + "]}}");
  REQUIRE(tokenizer.ok());
  const auto ids = tokenizer->encode("aaaa");
  REQUIRE(!ids.ok());
  CHECK(ids.error().message().find("is longer than the limit") != std::string::npos);
}

}  // namespace
}  // namespace ptero::text
