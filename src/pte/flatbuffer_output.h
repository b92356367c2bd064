// SPDX-License-Identifier: BSD-3-Clause
// What the three writers share: a FlatBufferBuilder that turns "too large" and "cannot be read"
// into errors instead of a broken buffer, and the container around the flatbuffer. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "base/byte_source.h"
#include "base/result.h"

namespace ptero::pte {

// After the first failure every call returns a null offset and finish() the error, so the code
// that builds tables has no checks of its own.
class FlatbufferOutput {
 public:
  template <typename T>
  using Vector = flatbuffers::Offset<flatbuffers::Vector<T>>;

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  flatbuffers::Offset<flatbuffers::String> string(std::string_view text);
  flatbuffers::Offset<flatbuffers::String> optional_string(const std::optional<std::string>& text);

  // Elements are converted to the stored type Stored; the read-back check of the writers finds
  // numbers that do not fit.
  template <typename Stored, typename T>
  Vector<Stored> numbers(const std::vector<T>& items) {
    if (!reserve(items.size() * sizeof(Stored))) {
      return 0;
    }
    return builder_.CreateVector<Stored>(items.size(),
                                         [&](size_t i) { return static_cast<Stored>(items[i]); });
  }
  // 16-byte aligned, as the format wants inline weights and delegates.
  Vector<uint8_t> bytes(const ByteRange& data);

  template <typename T>
  Vector<flatbuffers::Offset<T>> tables(const std::vector<flatbuffers::Offset<T>>& items) {
    return reserve(items.size() * sizeof(uint32_t)) ? builder_.CreateVector(items) : 0;
  }
  // A vector of tables made by `make` from each item.
  template <typename Item, typename Make>
  auto tables_of(const std::vector<Item>& items, Make make) {
    std::vector<decltype(make(items.front()))> made;
    made.reserve(items.size());
    for (const Item& item : items) {
      made.push_back(reserve(kTableRoom) ? make(item) : 0);
    }
    return tables(made);
  }

  // For the lists that the exporter leaves out when they are empty; see program.h.
  template <typename Item, typename Make>
  auto tables_unless_empty(const std::vector<Item>& items, Make make) {
    return items.empty() ? decltype(tables_of(items, make))(0) : tables_of(items, make);
  }

  // `identifier` has four characters. The output cannot be used again.
  template <typename T>
  Result<std::vector<std::byte>> finish(flatbuffers::Offset<T> root, const char* identifier) {
    PTERO_RETURN_IF_ERROR(status_);
    builder_.Finish(root, identifier);
    return finished();
  }

 private:
  static constexpr uint64_t kTableRoom = 1024;  // more than a table without its vectors takes

  // False when `size` more bytes do not fit; then status_ says so.
  bool reserve(uint64_t size);
  std::vector<std::byte> finished() const;

  flatbuffers::FlatBufferBuilder builder_;
  Status status_;
};

// One segment's place, counted from the segment base.
struct SegmentPlace {
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct SegmentPlan {
  std::vector<SegmentPlace> places;
  uint64_t data_size = 0;  // up to the end of the last segment
};

// Segments follow each other in order, each at a multiple of kSegmentAlignment.
// Code invalid_program when the sum does not fit in 64 bits.
Result<SegmentPlan> plan_segments(const std::vector<ByteRange>& segments);

// Where segments start: aligned for every element type, for mmap-free GPU uploads and as
// ExecuTorch's own exporter places them.
inline constexpr uint64_t kSegmentAlignment = 128;

// The finished file: `head` (flatbuffer with its header already inside), zeros up to the segment
// base, the segments.
Result<ByteSourcePtr> compose_container(std::vector<std::byte> head, uint64_t segment_base,
                                        const SegmentPlan& plan,
                                        const std::vector<ByteRange>& segments, std::string name);

// Puts `header`, whose size is a multiple of 16, behind the root offset and the identifier of
// `flatbuffer` and moves the root offset.
std::vector<std::byte> insert_header(const std::vector<std::byte>& flatbuffer,
                                     const std::vector<std::byte>& header);

// Appends little-endian numbers.
void append_u16(std::vector<std::byte>& out, uint16_t value);
void append_u32(std::vector<std::byte>& out, uint32_t value);
void append_u64(std::vector<std::byte>& out, uint64_t value);
void append_text(std::vector<std::byte>& out, std::string_view text);

}  // namespace ptero::pte
