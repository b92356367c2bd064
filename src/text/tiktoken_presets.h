// SPDX-License-Identifier: BSD-3-Clause
// What tiktoken files leave to the programs that read them. Internal to src/text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace ptero::text::detail {

struct TiktokenPreset {
  TiktokenOptions options;
  bool nfc = false;  // text is brought into this normal form first
};

// By the number of ranks in the file.
Result<TiktokenPreset> tiktoken_preset(size_t ranks);

// Of tekken.json files that do not list theirs.
std::vector<std::string> tekken_special_tokens();

}  // namespace ptero::text::detail
