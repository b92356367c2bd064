// SPDX-License-Identifier: BSD-3-Clause
#include "pte/flatbuffer_input.h"

#include <array>
#include <utility>

#include "base/checked.h"

namespace ptero::pte {
namespace {

// Identifier included; nothing shorter can be a flatbuffer of ours.
constexpr uint64_t kMinFlatbufferSize = 8;

// The largest scalar in the schemas.
constexpr size_t kScalarAlignment = 8;

}  // namespace

Result<FlatbufferBytes> FlatbufferBytes::load(const ByteRange& range, std::string_view kind) {
  PTERO_REJECT_IF(range.size() < kMinFlatbufferSize, invalid_program,
                  "The flatbuffer of the {} ({} bytes) is shorter than {} bytes.", kind,
                  range.size(), kMinFlatbufferSize);
  PTERO_REJECT_IF(range.size() > kMaxFlatbufferSize, invalid_program,
                  "The flatbuffer of the {} ({} bytes) exceeds the limit ({} bytes).", kind,
                  range.size(), kMaxFlatbufferSize);
  FlatbufferBytes bytes;
  bytes.range_ = range;
  const auto view = range.view();
  if (view && reinterpret_cast<uintptr_t>(view->data()) % kScalarAlignment == 0) {
    bytes.view_ = *view;
    return bytes;
  }
  PTERO_REJECT_IF(range.size() > kMaxCopiedFlatbufferSize, invalid_program,
                  "The flatbuffer of the {} ({} bytes) exceeds the limit ({} bytes) for one that "
                  "is not aligned in mapped memory.",
                  kind, range.size(), kMaxCopiedFlatbufferSize);
  PTERO_ASSIGN_OR_RETURN(bytes.copy_, range.copy(kMaxCopiedFlatbufferSize));
  return bytes;
}

const uint8_t* FlatbufferBytes::data() const {
  return reinterpret_cast<const uint8_t*>(copy_.empty() ? view_.data() : copy_.data());
}

std::string_view FlatbufferBytes::identifier() const {
  return {reinterpret_cast<const char*>(data()) + sizeof(flatbuffers::uoffset_t), 4};
}

ByteRange FlatbufferBytes::range_of(const flatbuffers::Vector<uint8_t>* bytes) const {
  if (bytes == nullptr) {
    return ByteRange();
  }
  // The verifier has seen that the vector is inside.
  const auto offset = static_cast<uint64_t>(bytes->data() - data());
  Result<ByteRange> range = range_.subrange(offset, bytes->size());
  return range.ok() ? *std::move(range) : ByteRange();
}

Status FieldReader::charge(uint64_t count, uint64_t size) {
  const std::optional<uint64_t> bytes = checked_mul(count, size);
  const std::optional<uint64_t> total = bytes ? checked_add(decoded_bytes_, *bytes) : std::nullopt;
  PTERO_REJECT_IF(!total || *total > kMaxDecodedBytes, invalid_program,
                  "The {} decodes to more than the limit ({} bytes): it repeats its parts.", kind_,
                  kMaxDecodedBytes);
  decoded_bytes_ = *total;
  return ok_status();
}

Result<std::string> FieldReader::read_text(const flatbuffers::String* text) {
  if (text == nullptr) {
    return std::string();
  }
  PTERO_RETURN_IF_ERROR(charge(text->size(), 1));
  return text->str();
}

Result<std::string> FieldReader::read_name(const flatbuffers::String* text, const char* name) {
  PTERO_REJECT_IF(text == nullptr || text->size() == 0, invalid_program,
                  "The name {} is absent or empty.", name);
  PTERO_REJECT_IF(text->size() > kMaxNameSize, invalid_program,
                  "The name {} ({} bytes) exceeds the limit ({} bytes).", name, text->size(),
                  kMaxNameSize);
  return read_text(text);
}

Result<FieldReader::Shape> FieldReader::read_shape(const flatbuffers::Vector<int32_t>* sizes,
                                                   const flatbuffers::Vector<uint8_t>* dim_order) {
  PTERO_RETURN_IF_ERROR(check_present(sizes, "Tensor.sizes"));
  PTERO_RETURN_IF_ERROR(check_present(dim_order, "Tensor.dim_order"));
  const size_t rank = sizes->size();
  PTERO_REJECT_IF(rank > kMaxRank, invalid_program,
                  "The rank ({}) of a tensor exceeds the limit ({}).", rank, kMaxRank);
  PTERO_REJECT_IF(dim_order->size() != rank, invalid_program,
                  "The dim order has {} entries for a tensor of rank {}.", dim_order->size(), rank);
  Shape shape;
  PTERO_ASSIGN_OR_RETURN(shape.sizes, read_numbers<int32_t>(sizes));
  PTERO_ASSIGN_OR_RETURN(shape.dim_order, read_numbers<uint8_t>(dim_order));
  std::array<bool, kMaxRank> seen = {};
  for (size_t i = 0; i < rank; ++i) {
    PTERO_REJECT_IF(shape.sizes[i] < 0, invalid_program,
                    "The size ({}) of dimension {} is negative.", shape.sizes[i], i);
    const uint8_t dim = shape.dim_order[i];
    PTERO_REJECT_IF(dim >= rank, invalid_program,
                    "The dim order names dimension {} of a tensor of rank {}.", dim, rank);
    PTERO_REJECT_IF(seen[dim], invalid_program, "The dim order names dimension {} twice.", dim);
    seen[dim] = true;
  }
  return shape;
}

Result<ByteRange> read_segment(const ByteRange& base, uint64_t offset, uint64_t size) {
  const std::optional<uint64_t> end = checked_add(offset, size);
  PTERO_REJECT_IF(!end, invalid_program,
                  "The end of the segment at offset {} ({} bytes) does not fit in 64 bits.", offset,
                  size);
  PTERO_REJECT_IF(*end > base.size(), invalid_program,
                  "The segment at offset {} ({} bytes) leaves the segment data ({} bytes).", offset,
                  size, base.size());
  return base.subrange(offset, size);
}

}  // namespace ptero::pte
