// SPDX-License-Identifier: BSD-3-Clause
#include "pte/flat_tensor_reader.h"

#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "pte/flatbuffer_input.h"
#include "pte/program.h"
#include "schema/flat_tensor_generated.h"

namespace ptero::pte {
namespace {

namespace ft = fbs::flat_tensor;

constexpr std::string_view kFlatTensorMagic = "FH01";
constexpr size_t kHeaderOffset = 8;  // behind root offset and identifier
constexpr uint32_t kHeaderLength = 40;
constexpr size_t kFlatTensorHeadSize = kHeaderOffset + kHeaderLength;

struct Layout {
  ByteRange flatbuffer;
  ByteRange segments;
};

Result<Layout> read_flat_tensor_layout(const ByteRange& file) {
  PTERO_REJECT_IF(file.size() < kFlatTensorHeadSize, invalid_program,
                  "The file ({} bytes) is shorter than the first {} bytes of a .ptd file.",
                  file.size(), kFlatTensorHeadSize);
  std::array<std::byte, kFlatTensorHeadSize> head;
  PTERO_RETURN_IF_ERROR(file.read(0, head));
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  PTERO_REJECT_IF(text.substr(4, 4) != ft::FlatTensorIdentifier(), invalid_program,
                  "The file identifier is {:?} where a .ptd file has {:?}.", text.substr(4, 4),
                  ft::FlatTensorIdentifier());
  PTERO_REJECT_IF(text.substr(kHeaderOffset, 4) != kFlatTensorMagic, invalid_program,
                  "The header's magic is {:?} where a .ptd file has {:?}.",
                  text.substr(kHeaderOffset, 4), kFlatTensorMagic);
  const uint32_t length = read_scalar<uint32_t>(head, 12);
  PTERO_REJECT_IF(length < kHeaderLength, invalid_program,
                  "The length of the .ptd header ({}) is below {} bytes.", length, kHeaderLength);
  const uint64_t flatbuffer_offset = read_scalar<uint64_t>(head, 16);
  const uint64_t flatbuffer_size = read_scalar<uint64_t>(head, 24);
  const uint64_t base = read_scalar<uint64_t>(head, 32);
  const uint64_t data_size = read_scalar<uint64_t>(head, 40);
  // The root offset at the file's start jumps over the header, so the flatbuffer begins at 0 and
  // flatbuffer_offset only says how many bytes the header added.
  const std::optional<uint64_t> flatbuffer_end = checked_add(flatbuffer_offset, flatbuffer_size);
  PTERO_REJECT_IF(!flatbuffer_end, invalid_program,
                  "The end of the flatbuffer (flatbuffer_offset {} + flatbuffer_size {}) does not "
                  "fit in 64 bits.",
                  flatbuffer_offset, flatbuffer_size);
  PTERO_REJECT_IF(*flatbuffer_end > file.size(), invalid_program,
                  "The flatbuffer (flatbuffer_offset {}, flatbuffer_size {}) leaves the file ({} "
                  "bytes).",
                  flatbuffer_offset, flatbuffer_size, file.size());
  Layout layout;
  PTERO_ASSIGN_OR_RETURN(layout.flatbuffer, file.subrange(0, *flatbuffer_end));
  if (base == 0 && data_size == 0) {
    return layout;
  }
  PTERO_REJECT_IF(base < *flatbuffer_end, invalid_program,
                  "The .ptd header's segment_base_offset ({}) is before the end of the flatbuffer "
                  "({}).",
                  base, *flatbuffer_end);
  const std::optional<uint64_t> end = checked_add(base, data_size);
  PTERO_REJECT_IF(!end, invalid_program,
                  "The end of the .ptd segments (segment_base_offset {} + segment_data_size {}) "
                  "does not fit in 64 bits.",
                  base, data_size);
  PTERO_REJECT_IF(*end > file.size(), invalid_program,
                  "The .ptd file ({} bytes) is cut off: its header places the end of the segments "
                  "at {}.",
                  file.size(), *end);
  PTERO_ASSIGN_OR_RETURN(layout.segments, file.subrange(base, data_size));
  return layout;
}

Result<TensorLayout> read_tensor_layout(const ft::TensorLayout& in, uint64_t segment_size,
                                        FieldReader& reader) {
  TensorLayout out;
  out.scalar_type = static_cast<ScalarType>(in.scalar_type());
  PTERO_REJECT_IF(!element_size(out.scalar_type), invalid_program,
                  "The scalar type ({}) of the .ptd tensor has no size per element.",
                  static_cast<int>(in.scalar_type()));
  PTERO_ASSIGN_OR_RETURN(FieldReader::Shape shape, reader.read_shape(in.sizes(), in.dim_order()));
  out.sizes = std::move(shape.sizes);
  out.dim_order = std::move(shape.dim_order);
  const Result<uint64_t> bytes = tensor_bytes(out.scalar_type, out.sizes);
  PTERO_REJECT_IF(!bytes.ok() || *bytes != segment_size, invalid_program,
                  "The .ptd tensor of type {} and sizes [{}] does not fill its segment ({} bytes).",
                  name_of(out.scalar_type), fmt::join(out.sizes, ", "), segment_size);
  return out;
}

}  // namespace

Result<FlatTensor> read_flat_tensor(const ByteRange& file) {
  PTERO_ASSIGN_OR_RETURN(const Layout layout, read_flat_tensor_layout(file));
  PTERO_ASSIGN_OR_RETURN(const FlatbufferBytes bytes,
                         FlatbufferBytes::load(layout.flatbuffer, ".ptd file"));
  PTERO_ASSIGN_OR_RETURN(const ft::FlatTensor* in,
                         verified_root<ft::FlatTensor>(bytes, ".ptd file"));
  FlatTensor out;
  out.version = in->version();
  PTERO_REJECT_IF(out.version != 0, unsupported,
                  "The .ptd schema version ({}) is newer than the one that is known (0).",
                  out.version);
  FieldReader reader(".ptd file");
  if (in->segments() != nullptr) {
    PTERO_RETURN_IF_ERROR(reader.charge(in->segments()->size(), sizeof(ByteRange)));
    for (const ft::DataSegment* segment : *in->segments()) {
      PTERO_ASSIGN_OR_RETURN(ByteRange range,
                             read_segment(layout.segments, segment->offset(), segment->size()),
                             "while reading segment {}", out.segments.size());
      out.segments.push_back(std::move(range));
    }
  }
  if (in->named_data() == nullptr) {
    return out;
  }
  PTERO_RETURN_IF_ERROR(reader.charge(in->named_data()->size(), sizeof(FlatTensorEntry)));
  out.entries.reserve(in->named_data()->size());  // keys are looked at while it grows
  std::unordered_set<std::string_view> keys;
  for (const ft::NamedData* named : *in->named_data()) {
    FlatTensorEntry entry;
    PTERO_ASSIGN_OR_RETURN(entry.key, reader.read_name(named->key(), "FlatTensor.named_data.key"),
                           "while reading entry {}", out.entries.size());
    PTERO_ASSIGN_OR_RETURN(entry.segment,
                           reader.read_id(named->segment_index(), out.segments.size(),
                                          "FlatTensor.named_data.segment_index", "segments"),
                           "while reading entry {:?}", entry.key);
    if (named->tensor_layout() != nullptr) {
      PTERO_ASSIGN_OR_RETURN(
          entry.layout,
          read_tensor_layout(*named->tensor_layout(), out.segments[entry.segment].size(), reader),
          "while reading entry {:?}", entry.key);
    }
    out.entries.push_back(std::move(entry));
    const std::string& key = out.entries.back().key;
    PTERO_REJECT_IF(!keys.insert(key).second, invalid_program,
                    "The key {:?} is in the .ptd file twice.", key);
  }
  return out;
}

}  // namespace ptero::pte
