// SPDX-License-Identifier: BSD-3-Clause
// Byte-pair encoding: characters are merged pair by pair, the pair of the lowest rank first.
#include <algorithm>
#include <array>
#include <functional>

#include "text/model.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr uint32_t kNoSymbol = ~uint32_t{0};
constexpr TokenId kNoToken = ~TokenId{0};

struct Merge {
  uint32_t rank = 0;
  TokenId result = 0;
};

// A node of the list of symbols that are left; a merged one has no token.
struct Symbol {
  TokenId id = kNoToken;
  uint32_t previous = kNoSymbol;
  uint32_t next = kNoSymbol;
  bool frozen = false;
};

// A merge that was possible when it was found: lowest rank first, then leftmost.
struct Candidate {
  uint64_t order = 0;  // rank, position
  TokenId result = 0;
  bool operator>(const Candidate& other) const { return order > other.order; }
};

class Bpe : public Model {
 public:
  Bpe(VocabularyPtr vocabulary, const std::vector<BpeMerge>& merges, BpeOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
    merges_.reserve(merges.size());
    pairs_.reserve(merges.size());
    for (const BpeMerge& merge : merges) {
      if (pairs_.insert(key(merge.left, merge.right), static_cast<uint32_t>(merges_.size()))) {
        merges_.push_back({merge.rank, merge.result});
      }
    }
    if (options_.byte_fallback) {
      complete_bytes_ = true;
      for (size_t byte = 0; byte < 256; ++byte) {
        const auto id = vocabulary_->byte(static_cast<uint8_t>(byte));
        bytes_[byte] = id.value_or(kNoToken);
        complete_bytes_ &= id.has_value();
      }
    }
  }

  Status encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    if (options_.ignore_merges) {
      if (const auto id = vocabulary_->id(piece)) {
        ids.push_back(*id);
        return ok_status();
      }
    }
    std::vector<Symbol> symbols;
    symbols.reserve(piece.size());
    split(piece, symbols);
    merge(symbols);
    for (const Symbol& symbol : symbols) {
      if (symbol.id != kNoToken) {
        ids.push_back(symbol.id);
      }
    }
    return ok_status();
  }

 private:
  static uint64_t key(TokenId left, TokenId right) { return uint64_t{left} << 32 | right; }

  const Merge* find(const Symbol& left, const Symbol& right) const {
    if (left.frozen || right.frozen) {
      return nullptr;
    }
    const uint32_t* index = pairs_.find(key(left.id, right.id));
    return index == nullptr ? nullptr : &merges_[*index];
  }

  // The characters as symbols, unknown ones replaced.
  void split(std::string_view piece, std::vector<Symbol>& symbols) const {
    const auto push = [&](TokenId id, bool frozen) {
      const auto position = static_cast<uint32_t>(symbols.size());
      if (position > 0) {
        symbols.back().next = position;
      }
      symbols.push_back({id, position > 0 ? position - 1 : kNoSymbol, kNoSymbol, frozen});
    };
    bool after_unknown = false;
    std::string spelled;
    for (size_t at = 0; at < piece.size();) {
      if (options_.frozen != nullptr) {
        if (const auto hit = options_.frozen->longest_prefix(piece.substr(at))) {
          push(hit->value, true);
          at += hit->size;
          after_unknown = false;
          continue;
        }
      }
      const std::string_view character = piece.substr(at, utf8_size(piece, at));
      const bool first = at == 0;
      at += character.size();
      std::string_view name = character;
      if ((!options_.continuing_prefix.empty() && !first) ||
          (!options_.end_suffix.empty() && at == piece.size())) {
        spelled = first ? "" : options_.continuing_prefix;
        spelled += character;
        spelled += at == piece.size() ? options_.end_suffix : "";
        name = spelled;
      }
      if (const auto id = vocabulary_->id(name)) {
        push(*id, false);
        after_unknown = false;
      } else if (has_bytes(name)) {
        for (const char byte : name) {
          push(bytes_[static_cast<unsigned char>(byte)], false);
        }
        after_unknown = false;
      } else if (options_.unknown) {
        if (!after_unknown || !options_.fuse_unknown) {
          push(*options_.unknown, false);
        }
        after_unknown = true;
      }
    }
  }

  bool has_bytes(std::string_view text) const {
    return options_.byte_fallback &&
           (complete_bytes_ || std::all_of(text.begin(), text.end(), [&](char byte) {
              return bytes_[static_cast<unsigned char>(byte)] != kNoToken;
            }));
  }

  void merge(std::vector<Symbol>& symbols) const {
    std::vector<Candidate> queue;
    const auto consider = [&](uint32_t left) {
      const uint32_t right = symbols[left].next;
      if (right == kNoSymbol) {
        return false;
      }
      if (const Merge* merge = find(symbols[left], symbols[right])) {
        queue.push_back({uint64_t{merge->rank} << 32 | left, merge->result});
        return true;
      }
      return false;
    };
    for (uint32_t i = 0; i + 1 < symbols.size(); ++i) {
      consider(i);
    }
    std::make_heap(queue.begin(), queue.end(), std::greater<>());
    while (!queue.empty()) {
      std::pop_heap(queue.begin(), queue.end(), std::greater<>());
      const Candidate candidate = queue.back();
      queue.pop_back();
      const auto left = static_cast<uint32_t>(candidate.order);
      Symbol& symbol = symbols[left];
      if (symbol.id == kNoToken || symbol.next == kNoSymbol) {
        continue;
      }
      Symbol& other = symbols[symbol.next];
      // The symbols may have been merged with others since.
      const Merge* merge = find(symbol, other);
      if (merge == nullptr || merge->result != candidate.result) {
        continue;
      }
      symbol.id = merge->result;
      symbol.next = other.next;
      other.id = kNoToken;
      if (symbol.next != kNoSymbol) {
        symbols[symbol.next].previous = left;
      }
      if (symbol.previous != kNoSymbol && consider(symbol.previous)) {
        std::push_heap(queue.begin(), queue.end(), std::greater<>());
      }
      if (consider(left)) {
        std::push_heap(queue.begin(), queue.end(), std::greater<>());
      }
    }
  }

  VocabularyPtr vocabulary_;
  BpeOptions options_;
  KeyMap pairs_;  // index into merges_
  std::vector<Merge> merges_;
  std::array<TokenId, 256> bytes_{};
  bool complete_bytes_ = false;
};

}  // namespace

ModelPtr make_bpe(VocabularyPtr vocabulary, const std::vector<BpeMerge>& merges,
                  BpeOptions options) {
  return std::make_unique<Bpe>(std::move(vocabulary), merges, std::move(options));
}

}  // namespace ptero::text
