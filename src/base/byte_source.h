// SPDX-License-Identifier: BSD-3-Clause
// Where the bytes of a model come from. Weights are the bulk of a model file, so they are never
// copied whole: a source is mapped memory that can be looked at, or something that is pulled piece
// by piece (a browser's download, a stream); ByteRange names a part of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace ptero {

// An immutable sequence of bytes. All methods may be called from several threads at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // In bytes; does not change.
  virtual uint64_t size() const = 0;

  // Fills `out` with the bytes from `offset` on. Code invalid_argument when the range leaves the
  // source, io when the bytes cannot be had; then the contents of `out` are unspecified.
  virtual Status read(uint64_t offset, std::span<std::byte> out) const = 0;

  // The bytes themselves, valid as long as the source lives, when they are in memory; empty when
  // they are not or the range leaves the source. Callers that get nothing fall back to read().
  virtual std::optional<std::span<const std::byte>> view(uint64_t offset, uint64_t size) const;

  // What messages call it: a path, a URL, or "memory".
  virtual const std::string& name() const = 0;

 protected:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // The one range check that every source uses.
  Status check_range(uint64_t offset, uint64_t size) const;
};

using ByteSourcePtr = std::shared_ptr<const ByteSource>;

// Maps a file read-only. Pages are loaded when touched. Nobody may shorten or rewrite the file
// while it is mapped (replacing it by a rename is fine): a lost page ends the process.
// Code io, with the system's reason, when the file cannot be opened or mapped.
Result<ByteSourcePtr> map_file(const std::string& path);

// Looks at memory of the caller, which must outlive the source and everything read from it.
ByteSourcePtr borrow_bytes(std::span<const std::byte> bytes, std::string name = "memory");

// Owns its bytes.
ByteSourcePtr own_bytes(std::vector<std::byte> bytes, std::string name = "memory");

// `size` bytes at `offset` of a source: what a segment, a constant or a delegate is until somebody
// reads it. Cheap to copy; keeps its source alive. Always inside its source.
class ByteRange {
 public:
  ByteRange() = default;  // empty, without a source

  // Code invalid_argument when the range leaves the source.
  static Result<ByteRange> make(ByteSourcePtr source, uint64_t offset, uint64_t size);
  static ByteRange whole(ByteSourcePtr source);

  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // In the source, for messages and alignment; 0 without a source.
  uint64_t offset() const { return offset_; }
  const ByteSourcePtr& source() const { return source_; }

  // `offset` counts from the start of this range. Code invalid_argument when it leaves the range.
  Result<ByteRange> subrange(uint64_t offset, uint64_t size) const;
  Status read(uint64_t offset, std::span<std::byte> out) const;

  // See ByteSource::view(); the empty range always has a view.
  std::optional<std::span<const std::byte>> view() const;

  // All bytes, copied. For small things only; code out_of_memory above `limit` bytes.
  Result<std::vector<std::byte>> copy(uint64_t limit) const;

 private:
  ByteRange(ByteSourcePtr source, uint64_t offset, uint64_t size)
      : source_(std::move(source)), offset_(offset), size_(size) {}

  ByteSourcePtr source_;
  uint64_t offset_ = 0;
  uint64_t size_ = 0;
};

}  // namespace ptero
