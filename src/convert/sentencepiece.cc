// SPDX-License-Identifier: BSD-3-Clause
#include "convert/sentencepiece.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace ptero::convert {

std::vector<std::pair<std::string_view, std::string_view>> merges_of_scores(
    std::span<const std::string> tokens, std::span<const float> scores) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) {
    ids.emplace(tokens[id], id);
  }
  struct Merge {
    float score;
    size_t left;
    size_t right;
  };
  std::vector<Merge> merges;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      // Not within a character.
      if ((static_cast<unsigned char>(token[cut]) & 0xc0u) == 0x80) {
        continue;
      }
      const auto left = ids.find(token.substr(0, cut));
      const auto right = left == ids.end() ? left : ids.find(token.substr(cut));
      if (left != ids.end() && right != ids.end()) {
        merges.push_back({scores[id], left->second, right->second});
      }
    }
  }
  // Among equals the longer parts, as the official converter orders them, then the lower ids: no
  // two merges are equal.
  std::ranges::sort(merges, [&](const Merge& a, const Merge& b) {
    const auto rank = [&](const Merge& m) {
      return std::tuple(-m.score, -static_cast<ptrdiff_t>(tokens[m.left].size()),
                        -static_cast<ptrdiff_t>(tokens[m.right].size()), m.left, m.right);
    };
    return rank(a) < rank(b);
  });
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  pairs.reserve(merges.size());
  for (const Merge& merge : merges) {
    pairs.emplace_back(tokens[merge.left], tokens[merge.right]);
  }
  return pairs;
}

}  // namespace ptero::convert
