// SPDX-License-Identifier: BSD-3-Clause
// What Python and Jinja do with strings. Texts are valid UTF-8. Internal to src/text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace ptero::text::jinja {

// Without the characters of `set` (null: white space) at its ends.
std::string_view strip(std::string_view text, const Value* set, bool left, bool right);
// At most `most` times; below 0 without end.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t most, Heap& heap);
// The first letter in upper case, the others in lower case; of each word, or of the text.
std::string capitalized(std::string_view text, bool every_word);
// At a separator, or at white space when that is null.
List split(std::string_view text, const Value* separator, int64_t most, Heap& heap);
std::string indented(std::string_view text, std::string_view indent, bool first, bool blank);
std::string escaped(std::string_view text);  // for HTML

}  // namespace ptero::text::jinja
