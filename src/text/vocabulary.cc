// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <utility>

#include "text/model.h"

namespace ptero::text {
namespace {

constexpr size_t kMaxTokens = 8'000'000;
constexpr size_t kMaxHole = 1 << 16;

}  // namespace

void Vocabulary::reserve(size_t count) {
  tokens_.reserve(count);
  grow(std::bit_ceil(count * 2 + 16));
}

void Vocabulary::grow(size_t slots) {
  if (slots <= slots_.size()) {
    return;
  }
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& moved : old) {
    if (moved.id != kNoToken) {
      slots_[slot(tokens_[moved.id], hash_bytes(tokens_[moved.id]))] = moved;
    }
  }
}

size_t Vocabulary::slot(std::string_view token, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t i = static_cast<size_t>(hash) & mask;; i = (i + 1) & mask) {
    const Slot& found = slots_[i];
    if (found.id == kNoToken || (found.tag == tag && tokens_[found.id] == token)) {
      return i;
    }
  }
}

Status Vocabulary::add(std::string_view token, TokenId id) {
  PTERO_REJECT_IF(id >= kMaxTokens, invalid_program,
                  "Id ({}) of token ({}) exceeds the limit ({}).", id, token.substr(0, 64),
                  kMaxTokens);
  PTERO_REJECT_IF(id > count_ * 2 + kMaxHole && id >= tokens_.capacity(), invalid_program,
                  "Id ({}) of token ({}) is far beyond the number of tokens ({}).", id,
                  token.substr(0, 64), count_);
  PTERO_REJECT_IF(id < tokens_.size() && !tokens_[id].empty() && tokens_[id] != token,
                  invalid_program, "Id ({}) is of two tokens ({} and {}).", id,
                  tokens_[id].substr(0, 64), token.substr(0, 64));
  if (count_ * 2 >= slots_.size()) {
    grow(std::max<size_t>(16, slots_.size() * 2));
  }
  if (id >= tokens_.size()) {
    tokens_.resize(id + 1);
  }
  const uint64_t hash = hash_bytes(token);
  Slot& found = slots_[slot(token, hash)];
  count_ += found.id == kNoToken ? 1 : 0;
  found = {id, static_cast<uint32_t>(hash >> 32)};
  tokens_[id] = token;
  return ok_status();
}

std::optional<TokenId> Vocabulary::id(std::string_view token) const {
  if (slots_.empty()) {
    return std::nullopt;
  }
  const Slot& found = slots_[slot(token, hash_bytes(token))];
  return found.id == kNoToken ? std::nullopt : std::optional(found.id);
}

std::string Vocabulary::byte_name(uint8_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

}  // namespace ptero::text
