// SPDX-License-Identifier: BSD-3-Clause
// Strings in, ids out, for tests/python/test_tokenizers.py.
//
//   tokenize FILE encode [--special] [--no-parse] [--time] [--pattern PATTERN_OF_TIKTOKEN]
//     stdin: strings, each after its length in bytes (u32, little endian)
//     stdout: for each its ids, after their number (u32 all)
//   tokenize FILE decode [--skip-special]
//     the reverse
//   tokenize FILE render
//     FILE is a chat template; stdin: messages, tools and further variables, each JSON after its
//     length; stdout: 0 and the text, or 1 and the error, after its length
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace {

using ptero::text::StreamDecoder;
using ptero::text::TokenId;
using ptero::text::Tokenizer;

bool read_u32(uint32_t& value) {
  return std::fread(&value, sizeof value, 1, stdin) == 1;
}

void write_u32(uint32_t value) {
  std::fwrite(&value, sizeof value, 1, stdout);
}

int fail(const ptero::Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 1;
}

int encode(const Tokenizer& tokenizer, const ptero::text::EncodeOptions& options) {
  uint32_t size = 0;
  while (read_u32(size)) {
    std::string text(size, '\0');
    if (size > 0 && std::fread(text.data(), size, 1, stdin) != 1) {
      return 1;
    }
    const auto ids = tokenizer.encode(text, options);
    if (!ids.ok()) {
      return fail(ids.error());
    }
    write_u32(static_cast<uint32_t>(ids->size()));
    for (const TokenId id : *ids) {
      write_u32(id);
    }
  }
  return 0;
}

int decode(const Tokenizer& tokenizer, const ptero::text::DecodeOptions& options) {
  uint32_t count = 0;
  while (read_u32(count)) {
    std::vector<TokenId> ids(count);
    for (TokenId& id : ids) {
      if (!read_u32(id)) {
        return 1;
      }
    }
    const std::string text = tokenizer.decode(ids, options);
    write_u32(static_cast<uint32_t>(text.size()));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

bool read_text(std::string& text) {
  uint32_t size = 0;
  if (!read_u32(size)) {
    return false;
  }
  text.resize(size);
  return size == 0 || std::fread(text.data(), size, 1, stdin) == 1;
}

int render(std::string_view source) {
  const auto parsed = ptero::text::ChatTemplate::parse(source);
  std::string messages, tools;
  ptero::text::ChatOptions options;
  while (read_text(messages) && read_text(tools) && read_text(options.template_kwargs)) {
    const auto text = parsed.ok() ? parsed->apply_json(messages, tools, options)
                                  : ptero::Result<std::string>(parsed.error());
    const std::string out = text.ok() ? *text : text.error().message();
    write_u32(text.ok() ? 0 : 1);
    write_u32(static_cast<uint32_t>(out.size()));
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv, argv + argc);
  if (args.size() < 3) {
    std::fprintf(stderr, "usage: tokenize FILE encode|decode|render [options]\n");
    return 2;
  }
  const auto file = ptero::map_file(argv[1]);
  if (!file.ok()) {
    return fail(file.error());
  }
  const auto bytes = (*file)->view(0, (*file)->size());
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (args[2] == "render") {
    return render(text);
  }
  const auto start = std::chrono::steady_clock::now();
  ptero::text::TiktokenOptions tiktoken;
  for (size_t i = 3; i + 1 < args.size(); ++i) {
    if (args[i] == "--pattern") {
      tiktoken.pattern = args[i + 1];
    }
  }
  const auto tokenizer = tiktoken.pattern.empty() ? Tokenizer::from_bytes(text)
                                                  : Tokenizer::from_tiktoken(text, tiktoken);
  if (!tokenizer.ok()) {
    return fail(tokenizer.error());
  }
  const auto loaded = std::chrono::steady_clock::now();
  ptero::text::EncodeOptions encode_options{.add_special = false};
  ptero::text::DecodeOptions decode_options;
  bool time = false;
  for (size_t i = 3; i < args.size(); ++i) {
    encode_options.add_special |= args[i] == "--special";
    encode_options.parse_special &= args[i] != "--no-parse";
    decode_options.skip_special |= args[i] == "--skip-special";
    time |= args[i] == "--time";
  }
  const int status =
      args[2] == "encode" ? encode(*tokenizer, encode_options) : decode(*tokenizer, decode_options);
  if (time) {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    std::fprintf(stderr, "load %.1f ms, run %.1f ms\n", Milliseconds(loaded - start).count(),
                 Milliseconds(std::chrono::steady_clock::now() - loaded).count());
  }
  return status;
}
