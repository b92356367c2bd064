// SPDX-License-Identifier: BSD-3-Clause
#include "text/model.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxTokens = 8'000'000;
constexpr size_t kMaxHole = 1 << 16;

}  // namespace

void Vocabulary::reserve(size_t count) {
  tokens_.reserve(count);
  ids_.reserve(count);
}

Status Vocabulary::add(std::string_view token, TokenId id) {
  PTERO_REJECT_IF(id >= kMaxTokens, invalid_program,
                  "Id ({}) of token ({}) exceeds the limit ({}).", id, token.substr(0, 64),
                  kMaxTokens);
  PTERO_REJECT_IF(id > ids_.size() * 2 + kMaxHole && id >= tokens_.capacity(), invalid_program,
                  "Id ({}) of token ({}) is far beyond the number of tokens ({}).", id,
                  token.substr(0, 64), ids_.size());
  if (id >= tokens_.size()) {
    tokens_.resize(id + 1);
  }
  tokens_[id] = token;
  ids_.insert_or_assign(std::string(token), id);
  return ok_status();
}

std::optional<TokenId> Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string Vocabulary::byte_name(uint8_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

}  // namespace ptero::text
