// SPDX-License-Identifier: BSD-3-Clause
// The unigram model: of all ways to cut a piece into tokens the one with the largest sum of scores.
#include <algorithm>
#include <cmath>

#include "text/model.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

constexpr double kUnknownPenalty = 10.0;
constexpr double kBonusLoss = 0.1;

class Unigram : public Model {
 public:
  Unigram(VocabularyPtr vocabulary, UnigramScores scores, std::vector<bool> bonus,
          UnigramOptions options)
      : vocabulary_(std::move(vocabulary)),
        scores_(std::move(scores)),
        bonus_(std::move(bonus)),
        options_(options) {
    double lowest = std::numeric_limits<double>::infinity();
    for (TokenId id = 0; id < scores_.size(); ++id) {
      if (!std::isnan(scores_[id])) {
        words_.insert(vocabulary_->token(id), id);
        lowest = std::min(lowest, scores_[id]);
        highest_ = std::max(highest_, scores_[id]);
      }
    }
    unknown_score_ = (std::isfinite(lowest) ? lowest : 0.0) - kUnknownPenalty;
  }

  Status encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    // best[i]: the best way to cut the first i bytes; kNoToken stands for an unknown character.
    struct Way {
      double score = 0;
      size_t start = 0;
      TokenId id = kNoToken;
      bool reached = false;
    };
    std::vector<Way> best(piece.size() + 1);
    best[0].reached = true;
    const auto offer = [&](size_t start, size_t end, double score, TokenId id) {
      double sum = best[start].score + score;
      if (options_.single_precision) {
        sum =
            static_cast<double>(static_cast<float>(best[start].score) + static_cast<float>(score));
      }
      if (!best[end].reached || sum > best[end].score) {
        best[end] = {sum, start, id, true};
      }
    };
    for (size_t at = 0; at < piece.size();) {
      const size_t size = utf8_size(piece, at);
      bool single = false;
      words_.each_prefix(piece.substr(at), [&](Trie::Hit hit) {
        const double score = bonus_.empty() || !bonus_[hit.value]
                                 ? scores_[hit.value]
                                 : static_cast<double>(hit.size) * highest_ - kBonusLoss;
        offer(at, at + hit.size, score, hit.value);
        single |= hit.size == size;
      });
      if (!single) {
        offer(at, at + size, unknown_score_, kNoToken);
      }
      at += size;
    }
    std::vector<Way> ways;
    for (size_t end = piece.size(); end > 0; end = best[end].start) {
      ways.push_back(best[end]);
      ways.back().reached = false;
    }
    std::reverse(ways.begin(), ways.end());
    for (size_t i = 0; i < ways.size();) {
      if (ways[i].id != kNoToken && ways[i].id != options_.unknown) {
        ids.push_back(ways[i++].id);
        continue;
      }
      // Unknown characters in a row are one unknown token, or all of their bytes.
      const size_t start = ways[i].start;
      while (i < ways.size() && (ways[i].id == kNoToken || ways[i].id == options_.unknown)) {
        ++i;
      }
      const size_t end = i < ways.size() ? ways[i].start : piece.size();
      PTERO_RETURN_IF_ERROR(push_unknown(piece.substr(start, end - start), ids));
    }
    return ok_status();
  }

 private:
  Status push_unknown(std::string_view text, std::vector<TokenId>& ids) const {
    if (options_.byte_fallback) {
      const size_t before = ids.size();
      for (const char byte : text) {
        const auto id = vocabulary_->byte(static_cast<uint8_t>(byte));
        if (!id) {
          break;
        }
        ids.push_back(*id);
      }
      if (ids.size() - before == text.size()) {
        return ok_status();
      }
      ids.resize(before);
    }
    PTERO_REJECT_IF(!options_.unknown, invalid_argument,
                    "Text ({}) is in no token of the vocabulary, which has no unknown token.",
                    text.substr(0, utf8_size(text, 0)));
    ids.push_back(*options_.unknown);
    return ok_status();
  }

  VocabularyPtr vocabulary_;
  UnigramScores scores_;
  std::vector<bool> bonus_;
  UnigramOptions options_;
  Trie words_;
  double highest_ = -std::numeric_limits<double>::infinity();
  double unknown_score_ = 0;
};

class WordPiece : public Model {
 public:
  WordPiece(VocabularyPtr vocabulary, WordPieceOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {}

  Status encode(std::string_view piece, std::vector<TokenId>& ids) const override {
    const size_t before = ids.size();
    if (options_.whole_words || !cut(piece, ids)) {
      ids.resize(before);
      ids.push_back(options_.whole_words ? vocabulary_->id(piece).value_or(options_.unknown)
                                         : options_.unknown);
    }
    return ok_status();
  }

 private:
  // Greedily, the longest token first; false when that does not work out.
  bool cut(std::string_view piece, std::vector<TokenId>& ids) const {
    std::vector<size_t> starts;  // of characters
    for (size_t at = 0; at < piece.size(); at += utf8_size(piece, at)) {
      starts.push_back(at);
      if (starts.size() > options_.max_characters) {
        return false;
      }
    }
    starts.push_back(piece.size());
    std::string name;
    for (size_t from = 0; from + 1 < starts.size();) {
      size_t to = starts.size() - 1;
      for (; to > from; --to) {
        name = from > 0 ? options_.continuing_prefix : "";
        name += piece.substr(starts[from], starts[to] - starts[from]);
        if (const auto id = vocabulary_->id(name)) {
          ids.push_back(*id);
          break;
        }
      }
      if (to == from) {
        return false;
      }
      from = to;
    }
    return true;
  }

  VocabularyPtr vocabulary_;
  WordPieceOptions options_;
};

}  // namespace

ModelPtr make_unigram(VocabularyPtr vocabulary, UnigramScores scores, std::vector<bool> bonus,
                      UnigramOptions options) {
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), std::move(bonus),
                                   options);
}

ModelPtr make_word_piece(VocabularyPtr vocabulary, WordPieceOptions options) {
  return std::make_unique<WordPiece>(std::move(vocabulary), std::move(options));
}

}  // namespace ptero::text
