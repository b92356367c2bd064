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

struct Merge {
  uint32_t rank = 0;
  TokenId result = 0;
};

// A node of the list of symbols that are left; a merged one has no token.
struct Symbol {
  TokenId id = kNoToken;
  uint32_t previous = kNoSymbol;
  uint32_t next = kNoSymbol;
  uint32_t start = 0;  // in the piece
  uint32_t size = 0;
  bool frozen = false;
};

// A merge that was possible when it was found: lowest rank first, then leftmost.
struct Candidate {
  uint64_t order = 0;  // rank, position
  TokenId result = 0;
  bool operator>(const Candidate& other) const { return order > other.order; }
};

// Merges that a file lists.
class ListedMerges {
 public:
  static constexpr bool kByText = false;

  explicit ListedMerges(const std::vector<BpeMerge>& merges) {
    merges_.reserve(merges.size());
    pairs_.reserve(merges.size());
    for (const BpeMerge& merge : merges) {
      if (pairs_.insert(key(merge.left, merge.right), static_cast<uint32_t>(merges_.size()))) {
        merges_.push_back({static_cast<uint32_t>(merges_.size()), merge.result});
      }
    }
  }
  std::optional<Merge> find(std::string_view, const Symbol& left, const Symbol& right) const {
    const uint32_t* index = pairs_.find(key(left.id, right.id));
    return index == nullptr ? std::nullopt : std::optional(merges_[*index]);
  }

 private:
  static uint64_t key(TokenId left, TokenId right) { return uint64_t{left} << 32 | right; }

  KeyMap pairs_;  // index into merges_
  std::vector<Merge> merges_;
};

// Two symbols merge when their text together is a token.
class MergesByText {
 public:
  static constexpr bool kByText = true;

  MergesByText(VocabularyPtr vocabulary, std::vector<uint32_t> ranks)
      : vocabulary_(std::move(vocabulary)), ranks_(std::move(ranks)) {
    for (TokenId id = 0; id < ranks_.size(); ++id) {
      if (ranks_[id] != kNeverMerged) {
        longest_ = std::max(longest_, vocabulary_->token(id).size());
      }
    }
  }
  std::optional<Merge> find(std::string_view piece, const Symbol& left, const Symbol& right) const {
    const size_t size = size_t{left.size} + right.size;
    if (size > longest_) {
      return std::nullopt;
    }
    const auto id = vocabulary_->id(piece.substr(left.start, size));
    if (!id || *id >= ranks_.size() || ranks_[*id] == kNeverMerged) {
      return std::nullopt;
    }
    return Merge{ranks_[*id], *id};
  }

 private:
  VocabularyPtr vocabulary_;
  std::vector<uint32_t> ranks_;
  size_t longest_ = 0;
};

template <typename Merges>
class Bpe : public Model {
 public:
  Bpe(VocabularyPtr vocabulary, Merges merges, BpeOptions options)
      : vocabulary_(std::move(vocabulary)),
        options_(std::move(options)),
        merges_(std::move(merges)) {
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
    merge(piece, symbols);
    for (const Symbol& symbol : symbols) {
      if (symbol.id != kNoToken) {
        ids.push_back(symbol.id);
      }
    }
    return ok_status();
  }

 private:
  std::optional<Merge> find(std::string_view piece, const Symbol& left, const Symbol& right) const {
    return left.frozen || right.frozen ? std::nullopt : merges_.find(piece, left, right);
  }

  // The characters as symbols, unknown ones replaced.
  void split(std::string_view piece, std::vector<Symbol>& symbols) const {
    const auto push = [&](TokenId id, size_t start, size_t size, bool frozen) {
      const auto position = static_cast<uint32_t>(symbols.size());
      if (position > 0) {
        symbols.back().next = position;
      }
      symbols.push_back({id, position > 0 ? position - 1 : kNoSymbol, kNoSymbol,
                         static_cast<uint32_t>(start), static_cast<uint32_t>(size), frozen});
    };
    bool after_unknown = false;
    std::string spelled;
    for (size_t at = 0; at < piece.size();) {
      if (options_.frozen != nullptr) {
        if (const auto hit = options_.frozen->longest_prefix(piece.substr(at))) {
          push(hit->value, at, hit->size, true);
          at += hit->size;
          after_unknown = false;
          continue;
        }
      }
      const std::string_view character = piece.substr(at, utf8_size(piece, at));
      const size_t start = at;
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
        push(*id, start, character.size(), false);
        after_unknown = false;
      } else if (has_bytes(name)) {
        for (const char byte : name) {
          push(bytes_[static_cast<unsigned char>(byte)], start, 0, Merges::kByText);
        }
        after_unknown = false;
      } else if (options_.unknown) {
        if (!after_unknown || !options_.fuse_unknown) {
          push(*options_.unknown, start, 0, Merges::kByText);
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

  void merge(std::string_view piece, std::vector<Symbol>& symbols) const {
    std::vector<Candidate> queue;
    const auto consider = [&](uint32_t left) {
      const uint32_t right = symbols[left].next;
      if (right == kNoSymbol) {
        return false;
      }
      if (const auto merge = find(piece, symbols[left], symbols[right])) {
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
      const auto merge = find(piece, symbol, other);
      if (!merge || merge->result != candidate.result) {
        continue;
      }
      symbol.id = merge->result;
      symbol.size += other.size;
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
  Merges merges_;
  std::array<TokenId, 256> bytes_{};
  bool complete_bytes_ = false;
};

}  // namespace

ModelPtr make_bpe(VocabularyPtr vocabulary, const std::vector<BpeMerge>& merges,
                  BpeOptions options) {
  return std::make_unique<Bpe<ListedMerges>>(std::move(vocabulary), ListedMerges(merges),
                                             std::move(options));
}

ModelPtr make_bpe_by_text(VocabularyPtr vocabulary, std::vector<uint32_t> ranks,
                          BpeOptions options) {
  MergesByText merges(vocabulary, std::move(ranks));
  return std::make_unique<Bpe<MergesByText>>(std::move(vocabulary), std::move(merges),
                                             std::move(options));
}

}  // namespace ptero::text
