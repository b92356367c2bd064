// SPDX-License-Identifier: BSD-3-Clause
#include "text/chat_template.h"

#include <doctest/doctest.h>

namespace ptero::text {
namespace {

Result<std::string> render(std::string_view source, const std::vector<ChatMessage>& messages = {},
                           const ChatOptions& options = {}) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) {
    return parsed.error();
  }
  return parsed->apply(messages, options);
}

std::string text(std::string_view source) {
  const auto made = render(source);
  CAPTURE(source);
  if (!made.ok()) {
    FAIL(made.error().message());
  }
  return *made;
}

std::string error(std::string_view source) {
  const auto made = render(source);
  CAPTURE(source);
  REQUIRE(!made.ok());
  return made.error().message();
}

std::string repeated(std::string_view part, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += part;
  }
  return out;
}

TEST_CASE("chat template: ChatML") {
  const std::vector<ChatMessage> messages = {{"system", "Be brief."}, {"user", "Hi\xFF"}};
  const auto made = render(chatml_template(), messages);
  REQUIRE(made.ok());
  CHECK(*made ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi\uFFFD<|im_end|>\n"
        "<|im_start|>assistant\n");
  const auto closed = render(chatml_template(), messages, {.add_generation_prompt = false});
  REQUIRE(closed.ok());
  CHECK(closed->ends_with("<|im_end|>\n"));
}

TEST_CASE("chat template: options become variables") {
  const auto made =
      render("{{ bos_token }}{{ eos_token }}{{ enable_thinking }}{{ tools is none }}", {},
             {.bos_token = "<s>",
              .eos_token = "</s>",
              .template_kwargs = R"({"enable_thinking": false})"});
  REQUIRE(made.ok());
  CHECK(*made == "<s></s>FalseTrue");
  CHECK(!render("", {}, {.template_kwargs = "[1]"}).ok());
  CHECK(!render("", {}, {.template_kwargs = "{"}).ok());
}

TEST_CASE("chat template: messages and tools as JSON") {
  const auto parsed =
      ChatTemplate::parse("{{ tools[0].name }}: {{ messages[0]['content'][0].text }}");
  REQUIRE(parsed.ok());
  const auto made =
      parsed->apply_json(R"([{"role":"user","content":[{"text":"x"}]}])", R"([{"name":"f"}])", {});
  REQUIRE(made.ok());
  CHECK(*made == "f: x");
  CHECK(!parsed->apply_json("{}", "", {}).ok());
  CHECK(!parsed->apply_json("[", "", {}).ok());
}

TEST_CASE("chat template: white space around tags") {
  CHECK(text("a\n  {% if true %}\nb\n  {% endif %}\nc\n") == "a\nb\nc");
  CHECK(text("a \n {%- if true -%} \n b {% endif +%}\nc") == "ab \nc");
  CHECK(text("a\n  {{ 1 }}\nb") == "a\n  1\nb");
  CHECK(text("{# x #}\na\r\nb\rc") == "a\nb\nc");
  CHECK(text("{% raw %}{{ x }}{% endraw %}") == "{{ x }}");
}

TEST_CASE("chat template: a template that refuses says so in its own words") {
  CHECK(error("{{ raise_exception('No system role!') }}") ==
        "The chat template refuses the conversation: No system role!");
}

TEST_CASE("chat template: mistakes have a line and a sentence") {
  const struct {
    std::string_view source, sentence;
  } kCases[] = {
      {"\n{% if x %}", "Chat template, line 2: tag has no end (endif)."},
      {"{% endif %}", "Chat template, line 1: tag (endif) ends nothing."},
      {"{{ a", "Chat template, line 1: a tag has no end."},
      {"{# a", "Chat template, line 1: a comment has no end."},
      {"{{ 'a }}", "Chat template, line 1: a string has no end."},
      {"{{ a b }}", "Chat template, line 1: (b) stands where the end of the tag belongs."},
      {"{{ (1 }}", "Chat template, line 1: a tag has no end."},
      {"{{ 1 + }}", "Chat template, line 1: a tag ends where a value belongs."},
      {"{{ ? }}", "Chat template, line 1: character (?) stands in a tag."},
      {"{% include 'x' %}", "Chat template, line 1: tag (include) is not supported."},
      {"{% break %}", "Chat template, line 1: tag (break) stands outside a loop."},
      {"{{ 99999999999999999999 }}",
       "Chat template, line 1: number (99999999999999999999) is out of range."},
      {"\n\n{{ a.b }}", "Chat template, line 3: (a) is undefined and has no member (b)."},
      {"{{ 1 + 'a' }}", "Chat template, line 1: an integer and a string cannot be combined."},
      {"{{ 'a' | magic }}", "Chat template, line 1: filter (magic) is not supported."},
      {"{{ 'a' is magic }}", "Chat template, line 1: test (magic) is not supported."},
      {"{{ x() }}", "Chat template, line 1: (x) is undefined and cannot be called."},
      {"{% set x = [] %}{{ x.append(x) }}",
       "Chat template, line 1: lists cannot be changed (append)."},
      {"{% for a, b in [1] %}{% endfor %}", "Chat template, line 1: an integer has no elements."},
      {"{% for a, b in [[1]] %}{% endfor %}",
       "Chat template, line 1: 2 values are wanted, but there are 1."},
      {"{{ {1: 2, 'a': 1} | dictsort }}",
       "Chat template, line 1: values that are neither all numbers nor all strings are not "
       "sorted."},
      {"\xFF", "Chat template (1 bytes) is not UTF-8."},
  };
  for (const auto& wrong : kCases) {
    CHECK(error(wrong.source) == wrong.sentence);
  }
}

TEST_CASE("chat template: what would never end, overflow or explode is stopped") {
  CHECK(error("{{ 1 % 0 }}").find("divided by 0") != std::string::npos);
  CHECK(error("{{ 1 // 0 }}").find("divided by 0") != std::string::npos);
  CHECK(error("{{ (-9223372036854775807 - 1) // -1 }}").find("out of range") != std::string::npos);
  CHECK(error("{{ 9 ** 99 }}").find("out of range") != std::string::npos);
  CHECK(error("{{ range(1000000000) }}").find("longer than the limit") != std::string::npos);
  CHECK(error("{{ range(1, 2, 3, 4) }}").find("one to three") != std::string::npos);
  CHECK(error("{{ 'a' * 1000000000000 }}").find("too often") != std::string::npos);
  CHECK(error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").find("too deeply") !=
        std::string::npos);
  CHECK(error("{% set n = namespace() %}{% set n.n = n %}{{ n }}").find("too deeply") !=
        std::string::npos);
  CHECK(error("{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}"
              "{% endfor %}{{ n.x == [n.x] }}")
            .find("too deeply") != std::string::npos);
  CHECK(error("{% set n = namespace(s='ab') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}"
              "{% endfor %}")
            .find("than the limit") != std::string::npos);
  CHECK(error("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
            .find("more steps") != std::string::npos);
  CHECK(error("{% for i in range(9999) %}{{ 'a' * 9999 }}{% endfor %}").find("longer than") !=
        std::string::npos);
  CHECK(error("{{" + repeated("(", 100'000)).find("no end") != std::string::npos);
  CHECK(error("{{" + repeated("(", 1000) + "1" + repeated(")", 1000) + "}}").find("too deeply") !=
        std::string::npos);
  for (const std::string_view part : {"not ", "- ", "1 + ", "a.", "1 if 1 else "}) {
    CHECK(error("{{" + repeated(part, 10'000) + "1}}").find("too deeply") != std::string::npos);
  }
  CHECK(error(repeated("{% if x %}", 10'000)).find("too deeply") != std::string::npos);
  CHECK(text("{{ 1 -}}" + repeated(" ", 500'000) + "{{ 2 }}") == "12");
}

TEST_CASE("chat template: tokenizer_config.json") {
  const auto config = read_chat_config(
      R"({"chat_template":[{"name":"tool_use","template":"t"},{"name":"default","template":"d"}],)"
      R"("bos_token":{"content":"<s>"},"eos_token":"</s>"})");
  REQUIRE(config.ok());
  CHECK(config->chat_template == "d");
  CHECK(config->bos_token == "<s>");
  CHECK(config->eos_token == "</s>");
  const auto empty = read_chat_config(R"({"bos_token":null})");
  REQUIRE(empty.ok());
  CHECK(empty->chat_template.empty());
  CHECK(!read_chat_config("[]").ok());
}

}  // namespace
}  // namespace ptero::text
