// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a tokenizer file; what is read must encode and decode, and streams must add up.
#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace {

void require(bool promise) {
  if (!promise) {
    __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptero::text;
  const std::string file(reinterpret_cast<const char*>(data), size);
  auto tokenizer = Tokenizer::from_bytes(file);
  if (!tokenizer.ok()) {
    require(!tokenizer.error().message().empty());
    // Small rank files are of no known model; with a pattern they read.
    tokenizer = Tokenizer::from_tiktoken(file, {.pattern = R"( ?\p{L}+|\s+|.)"});
    if (!tokenizer.ok()) {
      return 0;
    }
  }
  constexpr std::string_view kTexts[] = {"", " a  b\n", "abc \xF0\x9F\x98\x80 \xE4\xBD <s>",
                                         "e\xCC\x81\xCC\xA3 12 x.y <unk>ab"};
  for (const std::string_view text : kTexts) {
    const auto ids = tokenizer->encode(text);
    if (!ids.ok()) {
      require(!ids.error().message().empty());
      continue;
    }
    std::vector<TokenId> more = *ids;
    for (TokenId id = 0; id < 20; ++id) {
      more.push_back(id * 7919 % 300);
    }
    StreamDecoder stream(*tokenizer);
    std::string whole;
    for (const TokenId id : more) {
      whole += stream.push(id);
    }
    require(whole + stream.finish() == tokenizer->decode(more));
  }
  return 0;
}
