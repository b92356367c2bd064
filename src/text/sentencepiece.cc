// SPDX-License-Identifier: BSD-3-Clause
// SentencePiece's tokenizer.model: a protocol buffer, of which we read what encoding needs.
#include <algorithm>
#include <bit>
#include <cmath>

#include "text/parts.h"
#include "text/utf8.h"

namespace ptero::text::detail {
namespace {

constexpr size_t kMaxBytes = size_t{256} << 20;
constexpr size_t kMaxPieces = 4'000'000;
constexpr size_t kMaxPiece = 4096;  // bytes

// Fields of one message of a protocol buffer. Never reads outside its bytes.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  // False at the end and after an error.
  bool next() {
    uint64_t tag = 0;
    if (bytes_.empty() || !varint(tag)) {
      return false;
    }
    number_ = tag >> 3;
    payload_ = {};
    value_ = 0;
    switch (tag & 7) {
      case 0:
        return varint(value_);
      case 1:
        return take(8, payload_);
      case 2: {
        uint64_t size = 0;
        return varint(size) && take(size, payload_);
      }
      case 5:
        return take(4, payload_);
      default:
        return fail();
    }
  }
  bool failed() const { return failed_; }

  uint64_t number() const { return number_; }
  uint64_t value() const { return value_; }
  bool flag() const { return value_ != 0; }
  std::string_view payload() const { return payload_; }
  float as_float() const {
    uint32_t bits = 0;
    for (size_t i = payload_.size() == 4 ? 4 : 0; i-- > 0;) {
      bits = bits << 8 | static_cast<unsigned char>(payload_[i]);
    }
    return std::bit_cast<float>(bits);
  }

 private:
  bool fail() {
    failed_ = true;
    return false;
  }
  bool varint(uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) {
        return fail();
      }
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) {
        return true;
      }
    }
    return fail();
  }
  bool take(uint64_t size, std::string_view& out) {
    if (size > bytes_.size()) {
      return fail();
    }
    out = bytes_.substr(0, static_cast<size_t>(size));
    bytes_.remove_prefix(static_cast<size_t>(size));
    return true;
  }

  std::string_view bytes_;
  std::string_view payload_;
  uint64_t number_ = 0;
  uint64_t value_ = 0;
  bool failed_ = false;
};

enum PieceType : uint64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUser = 4,
  kUnused = 5,
  kByte = 6
};

struct ModelPiece {
  std::string_view text;
  float score = 0;
  uint64_t type = kNormal;
};

struct ModelFile {
  std::vector<ModelPiece> pieces;
  uint64_t model_type = 1;  // 1 unigram, 2 BPE
  int32_t begin = 1;
  std::string_view unknown_surface = " \xE2\x81\x87 ";
  std::string_view charsmap;
  SentencePieceRules rules;
};

Error damaged() {
  return Error(
      ErrorCode::invalid_program,
      "Tokenizer file is neither JSON nor tiktoken ranks nor a whole SentencePiece model.");
}

Status read_piece(std::string_view bytes, ModelFile& file) {
  ModelPiece piece;
  Fields fields(bytes);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        piece.text = fields.payload();
        break;
      case 2:
        piece.score = fields.as_float();
        break;
      case 3:
        piece.type = fields.value();
        break;
      default:
        break;
    }
  }
  if (fields.failed()) {
    return damaged();
  }
  const size_t index = file.pieces.size();
  std::string storage;
  PTERO_REJECT_IF(index == kMaxPieces, invalid_program,
                  "SentencePiece model holds more pieces than the limit ({}).", kMaxPieces);
  PTERO_REJECT_IF(piece.text.empty() || piece.text.size() > kMaxPiece, invalid_program,
                  "Piece {} of the SentencePiece model has {} bytes; 1 to {} are possible.", index,
                  piece.text.size(), kMaxPiece);
  PTERO_REJECT_IF(valid_utf8(piece.text, storage).data() != piece.text.data(), invalid_program,
                  "Piece {} of the SentencePiece model is not UTF-8.", index);
  PTERO_REJECT_IF(!std::isfinite(piece.score), invalid_program,
                  "Score ({}) of piece {} of the SentencePiece model is not finite.", piece.score,
                  index);
  file.pieces.push_back(piece);
  return ok_status();
}

Status read_trainer(std::string_view bytes, ModelFile& file) {
  Fields fields(bytes);
  while (fields.next()) {
    switch (fields.number()) {
      case 3:
        file.model_type = fields.value();
        break;
      case 24:
        file.rules.whitespace_as_suffix = fields.flag();
        break;
      case 41:
        file.begin = static_cast<int32_t>(fields.value());
        break;
      case 44:
        file.unknown_surface = fields.payload();
        break;
      default:
        break;
    }
  }
  std::string storage;
  const std::string_view surface = file.unknown_surface;
  if (fields.failed() || valid_utf8(surface, storage).data() != surface.data()) {
    return damaged();
  }
  return ok_status();
}

Status read_normalizer(std::string_view bytes, ModelFile& file) {
  Fields fields(bytes);
  while (fields.next()) {
    switch (fields.number()) {
      case 2:
        file.charsmap = fields.payload();
        break;
      case 3:
        file.rules.add_dummy_prefix = fields.flag();
        break;
      case 4:
        file.rules.remove_extra_whitespaces = fields.flag();
        break;
      case 5:
        file.rules.escape_whitespaces = fields.flag();
        break;
      default:
        break;
    }
  }
  return fields.failed() ? Status(damaged()) : ok_status();
}

Result<ModelFile> read_file(std::string_view bytes) {
  PTERO_REJECT_IF(bytes.size() > kMaxBytes, invalid_program,
                  "Tokenizer file is larger ({} bytes) than the limit ({}).", bytes.size(),
                  kMaxBytes);
  ModelFile file;
  Fields fields(bytes);
  while (fields.next()) {
    switch (fields.number()) {
      case 1:
        PTERO_RETURN_IF_ERROR(read_piece(fields.payload(), file));
        break;
      case 2:
        PTERO_RETURN_IF_ERROR(read_trainer(fields.payload(), file));
        break;
      case 3:
        PTERO_RETURN_IF_ERROR(read_normalizer(fields.payload(), file));
        break;
      default:
        break;
    }
  }
  if (fields.failed() || file.pieces.empty()) {
    return damaged();
  }
  return file;
}

// By falling score; equal scores are equal ranks.
std::vector<uint32_t> ranks_of(const ModelFile& file) {
  std::vector<TokenId> order;
  for (TokenId id = 0; id < file.pieces.size(); ++id) {
    const uint64_t type = file.pieces[id].type;
    if (type == kNormal || type == kUser || type == kUnused) {
      order.push_back(id);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return file.pieces[a].score > file.pieces[b].score;
  });
  std::vector<uint32_t> ranks(file.pieces.size(), kNeverMerged);
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool lower = i > 0 && file.pieces[order[i]].score != file.pieces[order[i - 1]].score;
    ranks[order[i]] = rank += lower ? 1 : 0;
  }
  return ranks;
}

ModelPtr make_model(const ModelFile& file, VocabularyPtr vocabulary,
                    std::shared_ptr<const Trie> user_defined, std::optional<TokenId> unknown,
                    bool byte_fallback) {
  if (file.model_type == 2) {
    return make_bpe_by_text(std::move(vocabulary), ranks_of(file),
                            {.unknown = unknown,
                             .fuse_unknown = true,
                             .byte_fallback = byte_fallback,
                             .frozen = std::move(user_defined)});
  }
  UnigramScores scores(vocabulary->size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<bool> bonus(vocabulary->size());
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    if (file.pieces[id].type == kNormal || file.pieces[id].type == kUser) {
      scores[id] = static_cast<double>(file.pieces[id].score);
      bonus[id] = file.pieces[id].type == kUser;
    }
  }
  return make_unigram(
      std::move(vocabulary), std::move(scores), std::move(bonus),
      {.unknown = unknown, .byte_fallback = byte_fallback, .single_precision = true});
}

}  // namespace

Result<PartsPtr> read_sentencepiece(std::string_view bytes) {
  PTERO_ASSIGN_OR_RETURN(const ModelFile file, read_file(bytes));
  PTERO_REJECT_IF(file.model_type != 1 && file.model_type != 2, unsupported,
                  "Model type ({}) of the SentencePiece model is neither unigram (1) nor BPE (2).",
                  file.model_type);
  auto parts = std::make_shared<TokenizerParts>();
  auto vocabulary = std::make_shared<Vocabulary>();
  auto user_defined = std::make_shared<Trie>();
  std::optional<TokenId> unknown;
  bool byte_fallback = false;
  vocabulary->reserve(file.pieces.size());
  for (TokenId id = 0; id < file.pieces.size(); ++id) {
    const ModelPiece& piece = file.pieces[id];
    PTERO_REJECT_IF(vocabulary->id(piece.text).has_value(), invalid_program,
                    "Piece {} ({}) of the SentencePiece model is there twice.", id, piece.text);
    PTERO_RETURN_IF_ERROR(vocabulary->add(piece.text, id));
    if (piece.type == kControl) {
      const AddedToken token{.content = std::string(piece.text), .id = id, .special = true};
      PTERO_RETURN_IF_ERROR(parts->added.add(token, nullptr));
    }
    if (piece.type == kUnknown) {
      unknown = id;
    } else if (piece.type == kUser) {
      user_defined->insert(piece.text, id);
    }
    byte_fallback |= piece.type == kByte;
  }
  parts->vocabulary = vocabulary;
  const auto words = user_defined->empty() ? nullptr : std::shared_ptr<const Trie>(user_defined);
  PTERO_ASSIGN_OR_RETURN(parts->normalizer,
                         make_sentencepiece_normalizer(file.charsmap, file.rules, words));
  parts->model = make_model(file, vocabulary, words, unknown, byte_fallback);
  if (unknown) {
    parts->unknown_text = {*unknown, std::string(file.unknown_surface)};
  }
  const bool cut_start = file.rules.add_dummy_prefix || file.rules.remove_extra_whitespaces;
  parts->decoder.push_back({.kind = DecodeStep::Kind::sentence_piece,
                            .count = cut_start ? size_t{1} : size_t{0},
                            .flag = file.rules.remove_extra_whitespaces});
  const bool begins = file.begin >= 0 && static_cast<size_t>(file.begin) < file.pieces.size() &&
                      file.pieces[static_cast<size_t>(file.begin)].type == kControl;
  if (begins) {
    parts->begin = static_cast<TokenId>(file.begin);
    parts->prefix = {*parts->begin};
  }
  parts->find_ends();
  return PartsPtr(std::move(parts));
}

}  // namespace ptero::text::detail
