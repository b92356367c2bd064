// SPDX-License-Identifier: BSD-3-Clause
#include "passes/joined_rows.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace ptero::passes {
namespace {

class JoinedRows : public ByteSource {
 public:
  JoinedRows(uint64_t rows, std::vector<RowPiece> pieces)
      : rows_(rows), pieces_(std::move(pieces)) {
    for (const RowPiece& piece : pieces_) {
      width_ += piece.taken;
    }
    const ByteSourcePtr& first = pieces_.front().bytes.source();
    name_ = first != nullptr ? first->name() : "nothing";
  }

  uint64_t size() const override { return rows_ * width_; }
  const std::string& name() const override { return name_; }

  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    while (!out.empty()) {
      const uint64_t row = offset / width_;
      uint64_t at = offset % width_;
      for (const RowPiece& piece : pieces_) {
        if (at < piece.taken && !out.empty()) {
          const uint64_t count = std::min<uint64_t>(piece.taken - at, out.size());
          PTERO_RETURN_IF_ERROR(piece.bytes.read(row * piece.stride + at, out.first(count)));
          out = out.subspan(count);
          offset += count;
          at = 0;
        } else {
          at -= std::min(at, piece.taken);
        }
      }
    }
    return ok_status();
  }

 private:
  uint64_t rows_;
  std::vector<RowPiece> pieces_;
  uint64_t width_ = 0;
  std::string name_;
};

}  // namespace

ByteSourcePtr join_rows(uint64_t rows, std::vector<RowPiece> pieces) {
  return std::make_shared<JoinedRows>(rows, std::move(pieces));
}

}  // namespace ptero::passes
