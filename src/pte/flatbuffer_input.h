// SPDX-License-Identifier: BSD-3-Clause
// What the readers share: getting at a flatbuffer's bytes, verifying it, and copying fields out of
// it under checks. Private to src/pte.
//
// FlatBuffers' verifier proves that every offset stays inside the buffer. It says nothing about
// the meaning of a field, lets absent fields and unknown union tags pass, and allows parts of the
// buffer to be used many times over; the helpers here deal with that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/limits.h"

namespace ptero::pte {

// A flatbuffer in memory, aligned for its scalars: looked at in place if the source allows it,
// otherwise copied.
class FlatbufferBytes {
 public:
  // `kind` is what messages call the flatbuffer: "program".
  static Result<FlatbufferBytes> load(const ByteRange& range, std::string_view kind);

  const uint8_t* data() const;
  size_t size() const { return copy_.empty() ? view_.size() : copy_.size(); }

  // The four bytes where flatbuffers keep their identifier.
  std::string_view identifier() const;

  // Where a vector of bytes inside this flatbuffer lies in the source it came from.
  ByteRange range_of(const flatbuffers::Vector<uint8_t>* bytes) const;

 private:
  ByteRange range_;
  std::span<const std::byte> view_;
  std::vector<std::byte> copy_;
};

inline flatbuffers::Verifier::Options verifier_options() {
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxFlatbufferDepth;
  options.max_tables = kMaxFlatbufferTables;
  return options;
}

// The root of a flatbuffer that passed the verifier.
template <typename Root>
Result<const Root*> verified_root(const FlatbufferBytes& bytes, std::string_view kind) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), verifier_options());
  PTERO_REJECT_IF(!verifier.VerifyBuffer<Root>(nullptr), invalid_program,
                  "The flatbuffer of the {} ({} bytes) is damaged: it points outside of itself, "
                  "nests deeper than {} levels or holds more than {} tables.",
                  kind, bytes.size(), kMaxFlatbufferDepth, kMaxFlatbufferTables);
  return flatbuffers::GetRoot<Root>(bytes.data());
}

// list->Get(i) for plain numbers. The verifier aligns a vector's length (4 bytes) and not its
// elements, so a crafted file can put a list of 8-byte numbers where they may not be loaded from.
template <typename T>
T item_at(const flatbuffers::Vector<T>& list, flatbuffers::uoffset_t index) {
  T value;
  std::memcpy(&value, list.Data() + size_t{index} * sizeof(T), sizeof(T));
  return flatbuffers::EndianScalar(value);
}

// One flatbuffer's worth of decoded values may not grow past kMaxDecodedBytes: a small file can
// name one list a million times, and every use becomes a copy of ours.
class FieldReader {
 public:
  explicit FieldReader(std::string_view kind) : kind_(kind) {}

  // Accounts for `count` values of `size` bytes before they are made.
  Status charge(uint64_t count, uint64_t size);

  // Field names are literals in the call, so that tools/check_error_corpus.py can see them.
  template <typename T>
  Status check_present(const T* field, const char* name) const {
    PTERO_REJECT_IF(field == nullptr, invalid_program, "The field {} is absent.", name);
    return ok_status();
  }

  // An absent string is an empty one where only a label is lost.
  Result<std::string> read_text(const flatbuffers::String* text);

  // A name that something is found by.
  Result<std::string> read_name(const flatbuffers::String* text, const char* name);

  // `value` as an index below `count`; `of` is what is counted, "values".
  template <typename Int>
  Result<uint32_t> read_id(Int value, size_t count, const char* name, const char* of) const {
    PTERO_REJECT_IF(!std::in_range<uint32_t>(value) || static_cast<uint64_t>(value) >= count,
                    invalid_program, "The id {} ({}) is not among the {} {}.", name, value, count,
                    of);
    return static_cast<uint32_t>(value);
  }

  // A list of indices. An absent list is an empty one: check_present() first where that is wrong.
  template <typename Int>
  Result<std::vector<uint32_t>> read_ids(const flatbuffers::Vector<Int>* ids, size_t count,
                                         const char* name, const char* of) {
    std::vector<uint32_t> out;
    if (ids == nullptr) {
      return out;
    }
    PTERO_RETURN_IF_ERROR(charge(ids->size(), sizeof(uint32_t)));
    out.reserve(ids->size());
    for (flatbuffers::uoffset_t i = 0; i < ids->size(); ++i) {
      const Int value = item_at(*ids, i);
      PTERO_REJECT_IF(!std::in_range<uint32_t>(value) || static_cast<uint64_t>(value) >= count,
                      invalid_program, "The id ({}) at position {} of {} is not among the {} {}.",
                      value, i, name, count, of);
      out.push_back(static_cast<uint32_t>(value));
    }
    return out;
  }

  // A list of plain numbers; absent is empty.
  template <typename To, typename From>
  Result<std::vector<To>> read_numbers(const flatbuffers::Vector<From>* numbers) {
    std::vector<To> out;
    if (numbers != nullptr) {
      PTERO_RETURN_IF_ERROR(charge(numbers->size(), sizeof(To)));
      out.reserve(numbers->size());
      for (flatbuffers::uoffset_t i = 0; i < numbers->size(); ++i) {
        out.push_back(static_cast<To>(item_at(*numbers, i)));
      }
    }
    return out;
  }

  // The shape that .pte, .ptd and .bpte tensors share: sizes that are there, not negative and not
  // too many, and a dim order that is a permutation of them.
  struct Shape {
    std::vector<int32_t> sizes;
    std::vector<uint8_t> dim_order;
  };
  Result<Shape> read_shape(const flatbuffers::Vector<int32_t>* sizes,
                           const flatbuffers::Vector<uint8_t>* dim_order);

 private:
  std::string_view kind_;
  uint64_t decoded_bytes_ = 0;
};

// Bytes [offset, offset + size) behind the segment base, as .pte and .ptd files list them.
// `base` is the part of the file that holds all segments.
Result<ByteRange> read_segment(const ByteRange& base, uint64_t offset, uint64_t size);

// Little-endian scalars of the hand-made headers. The caller has checked the size.
template <typename T>
T read_scalar(std::span<const std::byte> bytes, size_t offset) {
  std::make_unsigned_t<T> value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<std::make_unsigned_t<T>>(
        value | (static_cast<std::make_unsigned_t<T>>(bytes[offset + i]) << (8 * i)));
  }
  return static_cast<T>(value);
}

}  // namespace ptero::pte
