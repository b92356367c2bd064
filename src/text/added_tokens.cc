// SPDX-License-Identifier: BSD-3-Clause
#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxContent = 4096;  // bytes: matching takes this long at every position

bool ends_with_word(std::string_view text) {
  size_t start = text.size();
  while (start > 0 && (static_cast<unsigned char>(text[--start]) & 0xC0) == 0x80) {
  }
  return !text.empty() && is_word(utf8_step(text.substr(start)).code_point);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(utf8_step(text).code_point);
}

}  // namespace

Status AddedTokens::add(AddedToken token, const Normalizer* normalizer) {
  PTERO_REJECT_IF(token.content.size() > kMaxContent, invalid_program,
                  "Added token {} is longer ({} bytes) than the limit ({}).", token.id,
                  token.content.size(), kMaxContent);
  std::string pattern = token.content;
  if (token.normalized && normalizer != nullptr) {
    PTERO_RETURN_IF_ERROR(normalizer->apply(pattern, kMaxContent), "while adding token {}",
                          token.id);
  }
  const auto index = static_cast<uint32_t>(tokens_.size());
  by_id_.insert(token.id, index);
  by_content_.emplace(token.content, index);
  tries_[token.normalized][1].insert(pattern, index);
  if (!token.special) {
    tries_[token.normalized][0].insert(pattern, index);
  }
  tokens_.push_back(std::move(token));
  return ok_status();
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const uint32_t* index = by_id_.find(id);
  return index == nullptr ? nullptr : &tokens_[*index];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool normalized,
                                                  bool special) const {
  std::vector<Part> parts;
  const Trie& trie = tries_[normalized][special];
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !trie.empty();) {
    const auto hit = trie.longest_prefix(text.substr(at));
    if (!hit) {
      at += 1;
      continue;
    }
    const AddedToken& token = tokens_[hit->value];
    size_t start = at;
    size_t end = at + hit->size;
    at = end;
    if (token.single_word &&
        (ends_with_word(text.substr(0, start)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip) {
      start = std::max(done, trim_white_space(text.substr(0, start)));
    }
    if (token.rstrip) {
      // The library then still finds tokens in the white space that this one took; so do we.
      end += skip_white_space(text.substr(end));
    }
    if (done < start) {
      parts.push_back({text.substr(done, start - done), std::nullopt});
    }
    parts.push_back({text.substr(start, end - start), token.id});
    done = end;
  }
  if (done < text.size()) {
    parts.push_back({text.substr(done), std::nullopt});
  }
  return parts;
}

}  // namespace ptero::text
