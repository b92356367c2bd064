// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a chat template, run on a conversation.
#include <cstdint>
#include <string>
#include <string_view>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptero::text;
  const auto parsed = ChatTemplate::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) {
    return 0;
  }
  const auto text = parsed->apply_json(
      R"([{"role":"user","content":"Hi"},{"role":"assistant","content":[{"text":"x"}],"n":[1,2.5]}])",
      R"([{"name":"f"}])", {.bos_token = "<s>", .max_output_bytes = 1 << 16});
  if (!text.ok() && text.error().message().empty()) {
    __builtin_trap();
  }
  return 0;
}
