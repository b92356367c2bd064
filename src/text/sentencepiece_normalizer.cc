// SPDX-License-Identifier: BSD-3-Clause
// Normalising as SentencePiece does it: replacements by a table, white space, a space before.
#include <utility>

#include "text/charsmap.h"
#include "text/normalizer.h"
#include "text/utf8.h"

namespace ptero::text {
namespace {

class SentencePiece : public Normalizer {
 public:
  SentencePiece(Charsmap map, const SentencePieceRules& rules, std::shared_ptr<const Trie> words)
      : map_(std::move(map)), rules_(rules), words_(std::move(words)) {}

  Status apply(std::string& text, size_t limit) const override {
    const std::string_view space = rules_.escape_whitespaces ? kEscaped : " ";
    std::string_view input = text;
    while (rules_.remove_extra_whitespaces && !input.empty()) {
      const auto [piece, size] = next(input);
      if (piece != " ") {
        break;
      }
      input.remove_prefix(size);
    }
    std::string out;
    if (!input.empty() && rules_.add_dummy_prefix && !rules_.whitespace_as_suffix) {
      out += space;
    }
    const bool any = !input.empty();
    bool after_space = rules_.remove_extra_whitespaces;
    while (!input.empty()) {
      auto [piece, size] = next(input);
      input.remove_prefix(size);
      while (after_space && piece.starts_with(' ')) {
        piece.remove_prefix(1);
      }
      for (const char c : piece) {
        if (c == ' ') {
          out += space;
        } else {
          out += c;
        }
      }
      if (!piece.empty()) {
        after_space = rules_.remove_extra_whitespaces && piece.ends_with(' ');
      }
      PTERO_RETURN_IF_ERROR(check_normalized(out.size(), limit));
    }
    while (rules_.remove_extra_whitespaces && out.ends_with(space)) {
      out.resize(out.size() - space.size());
    }
    if (any && rules_.add_dummy_prefix && rules_.whitespace_as_suffix) {
      out += space;
    }
    text = std::move(out);
    return ok_status();
  }

 private:
  static constexpr std::string_view kEscaped = "\xE2\x96\x81";  // U+2581

  // What the start of the text becomes, and how many bytes of it that takes.
  std::pair<std::string_view, size_t> next(std::string_view input) const {
    if (words_ != nullptr) {
      if (const auto hit = words_->longest_prefix(input)) {
        return {input.substr(0, hit->size), hit->size};
      }
    }
    if (const auto hit = map_.longest_prefix(input)) {
      return {hit->replacement, hit->size};
    }
    const size_t size = utf8_size(input, 0);
    return {input.substr(0, size), size};
  }

  Charsmap map_;
  SentencePieceRules rules_;
  std::shared_ptr<const Trie> words_;
};

}  // namespace

Result<NormalizerPtr> make_sentencepiece_normalizer(std::string_view charsmap,
                                                    const SentencePieceRules& rules,
                                                    std::shared_ptr<const Trie> user_defined) {
  PTERO_ASSIGN_OR_RETURN(Charsmap map, Charsmap::read(charsmap));
  return NormalizerPtr(
      std::make_unique<SentencePiece>(std::move(map), rules, std::move(user_defined)));
}

}  // namespace ptero::text
