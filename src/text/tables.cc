// SPDX-License-Identifier: BSD-3-Clause
#include "text/tables.h"

#include <bit>
#include <cstring>
#include <random>

namespace ptero::text {

uint64_t hash_seed() {
  static const uint64_t value = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return value;
}

uint64_t hash_bytes(std::string_view bytes) {
  const auto mix = [](uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
  };
  uint64_t h = hash_seed() ^ bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    h = mix(h, word);
  }
  uint64_t word = 0;
  if (i < bytes.size()) {
    std::memcpy(&word, bytes.data() + i, bytes.size() - i);
  }
  h = mix(mix(h, word), hash_seed());
  return h ^ h >> 32;
}

void KeyMap::grow(size_t slots) {
  std::vector<Slot> old(slots);
  old.swap(slots_);
  mask_ = slots - 1;
  for (const Slot& slot : old) {
    if (slot.key != kEmpty) {
      size_t i = slot_of(slot.key);
      while (slots_[i].key != kEmpty) {
        i = (i + 1) & mask_;
      }
      slots_[i] = slot;
    }
  }
}

void KeyMap::reserve(size_t count) {
  const size_t slots = std::bit_ceil(count * 2 + 16);
  if (slots > slots_.size()) {
    grow(slots);
  }
}

bool KeyMap::insert(uint64_t key, uint32_t value) {
  if (size_ * 2 >= slots_.size()) {
    grow(slots_.empty() ? 16 : slots_.size() * 2);
  }
  for (size_t i = slot_of(key);; i = (i + 1) & mask_) {
    if (slots_[i].key == key) {
      return false;
    }
    if (slots_[i].key == kEmpty) {
      slots_[i] = {key, value};
      ++size_;
      return true;
    }
  }
}

void Trie::insert(std::string_view word, uint32_t value) {
  if (word.empty()) {
    return;
  }
  starts_[static_cast<unsigned char>(word[0])] = true;
  uint32_t node = 0;
  for (const char byte : word) {
    const uint64_t key = edge(node, byte);
    if (const uint32_t* next = edges_.find(key)) {
      node = *next;
    } else {
      const auto made = static_cast<uint32_t>(values_.size());
      edges_.insert(key, made);
      values_.push_back(kNone);
      node = made;
    }
  }
  if (values_[node] == kNone) {
    values_[node] = value;
    ++words_;
  }
}

}  // namespace ptero::text
