// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: the scores of a SentencePiece vocabulary as merges of byte-pair encoding.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptero::convert {

// Each way to put a token together from two others, best token first: merging in this order is
// merging by the score of what comes out. The views are of `tokens`.
std::vector<std::pair<std::string_view, std::string_view>> merges_of_scores(
    std::span<const std::string> tokens, std::span<const float> scores);

}  // namespace ptero::convert
