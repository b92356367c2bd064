// SPDX-License-Identifier: BSD-3-Clause
// Look-up tables of vocabularies. Internal to src/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptero::text {

// Seeds hashes anew for every process, so that no file can be made to fill a table badly.
uint64_t hash_seed();
uint64_t hash_bytes(std::string_view bytes);

// From 64-bit keys to 32-bit values in one array. The key ~0 is not allowed.
class KeyMap {
 public:
  void reserve(size_t count);
  // Keeps the first value of a key and says whether this was it.
  bool insert(uint64_t key, uint32_t value);
  // Null when the key is absent; good until the next insert.
  const uint32_t* find(uint64_t key) const {
    if (slots_.empty()) {
      return nullptr;
    }
    for (size_t i = slot_of(key);; i = (i + 1) & mask_) {
      if (slots_[i].key == key) {
        return &slots_[i].value;
      }
      if (slots_[i].key == kEmpty) {
        return nullptr;
      }
    }
  }
  size_t size() const { return size_; }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    uint32_t value = 0;
  };

  size_t slot_of(uint64_t key) const {
    uint64_t h = (key ^ seed_) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    return static_cast<size_t>(h ^ h >> 32) & mask_;
  }
  void grow(size_t slots);

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t size_ = 0;
  uint64_t seed_ = hash_seed();
};

// Byte strings with a value each, found as prefixes of a text.
class Trie {
 public:
  // Keeps the first value of a word.
  void insert(std::string_view word, uint32_t value);
  bool empty() const { return words_ == 0; }

  struct Hit {
    size_t size = 0;  // bytes
    uint32_t value = 0;
  };
  // Calls visit(Hit) for every word that `text` starts with, shortest first.
  template <typename Visit>
  void each_prefix(std::string_view text, Visit&& visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t* next = edges_.find(edge(node, text[i]));
      if (next == nullptr) {
        return;
      }
      node = *next;
      if (values_[node] != kNone) {
        visit(Hit{i + 1, values_[node]});
      }
    }
  }
  std::optional<Hit> longest_prefix(std::string_view text) const {
    std::optional<Hit> best;
    if (!text.empty() && starts_[static_cast<unsigned char>(text[0])]) {
      each_prefix(text, [&](Hit hit) { best = hit; });
    }
    return best;
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static uint64_t edge(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  KeyMap edges_;
  std::vector<uint32_t> values_{kNone};
  std::vector<bool> starts_ = std::vector<bool>(256);
  size_t words_ = 0;
};

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return static_cast<size_t>(hash_bytes(text)); }
};
template <typename T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

}  // namespace ptero::text
