// SPDX-License-Identifier: BSD-3-Clause
#include "base/byte_source.h"

#include <utility>

#include "base/checked.h"
#include "base/memory_source.h"

namespace ptero {
namespace {

class BorrowedSource final : public MemorySource {
 public:
  BorrowedSource(std::span<const std::byte> bytes, std::string name)
      : MemorySource(bytes, std::move(name)) {}
};

class OwnedSource final : public MemorySource {
 public:
  // A vector's storage does not move with the vector, so the span stays valid.
  OwnedSource(std::vector<std::byte> bytes, std::string name)
      : MemorySource(bytes, std::move(name)), storage_(std::move(bytes)) {}

 private:
  std::vector<std::byte> storage_;
};

}  // namespace

std::optional<std::span<const std::byte>> ByteSource::view(uint64_t, uint64_t) const {
  return std::nullopt;
}

Status ByteSource::check_range(uint64_t offset, uint64_t size) const {
  const std::optional<uint64_t> end = checked_add(offset, size);
  PTERO_REJECT_IF(!end || *end > this->size(), invalid_argument,
                  "The read of {} bytes at offset {} leaves {} ({} bytes).", size, offset, name(),
                  this->size());
  return ok_status();
}

ByteSourcePtr borrow_bytes(std::span<const std::byte> bytes, std::string name) {
  return std::make_shared<BorrowedSource>(bytes, std::move(name));
}

ByteSourcePtr own_bytes(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<OwnedSource>(std::move(bytes), std::move(name));
}

Result<ByteRange> ByteRange::make(ByteSourcePtr source, uint64_t offset, uint64_t size) {
  return whole(std::move(source)).subrange(offset, size);
}

ByteRange ByteRange::whole(ByteSourcePtr source) {
  const uint64_t size = source == nullptr ? 0 : source->size();
  return ByteRange(std::move(source), 0, size);
}

Result<ByteRange> ByteRange::subrange(uint64_t offset, uint64_t size) const {
  const std::optional<uint64_t> end = checked_add(offset, size);
  PTERO_REJECT_IF(!end || *end > size_, invalid_argument,
                  "The part of {} bytes at offset {} leaves its range ({} bytes).", size, offset,
                  size_);
  return ByteRange(source_, offset_ + offset, size);
}

Status ByteRange::read(uint64_t offset, std::span<std::byte> out) const {
  PTERO_ASSIGN_OR_RETURN(const ByteRange part, subrange(offset, out.size()));
  if (out.empty()) {
    return ok_status();
  }
  return source_->read(part.offset_, out);
}

std::optional<std::span<const std::byte>> ByteRange::view() const {
  if (empty()) {
    return std::span<const std::byte>();
  }
  return source_->view(offset_, size_);
}

Result<std::vector<std::byte>> ByteRange::copy(uint64_t limit) const {
  PTERO_REJECT_IF(size_ > limit, out_of_memory,
                  "The copy of {} bytes exceeds the limit ({} bytes).", size_, limit);
  std::vector<std::byte> bytes(static_cast<size_t>(size_));
  PTERO_RETURN_IF_ERROR(read(0, bytes));
  return bytes;
}

}  // namespace ptero
