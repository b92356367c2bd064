// SPDX-License-Identifier: BSD-3-Clause
#include "pte/flat_tensor_writer.h"

#include <utility>

#include "base/checked.h"
#include "pte/flat_tensor_reader.h"
#include "pte/flatbuffer_output.h"
#include "schema/flat_tensor_generated.h"

namespace ptero::pte {
namespace {

namespace ft = ptero::fbs::flat_tensor;
using flatbuffers::Offset;

// The header's fields end after 40 bytes; the flatbuffer behind it stays 16-byte aligned.
constexpr uint32_t kFlatTensorHeaderSize = 40;
constexpr uint64_t kPaddedHeaderSize = 48;

Result<std::vector<std::byte>> build(const FlatTensor& file, const SegmentPlan& plan) {
  FlatbufferOutput out;
  flatbuffers::FlatBufferBuilder& fbb = out.builder();
  const auto segments = out.tables_of(plan.places, [&](const SegmentPlace& x) {
    return ft::CreateDataSegment(fbb, x.offset, x.size);
  });
  const auto entries = out.tables_of(file.entries, [&](const FlatTensorEntry& x) {
    Offset<ft::TensorLayout> layout;
    if (x.layout) {
      const auto sizes = out.numbers<int32_t>(x.layout->sizes);
      layout = ft::CreateTensorLayout(fbb, static_cast<fbs::ScalarType>(x.layout->scalar_type),
                                      sizes, out.numbers<uint8_t>(x.layout->dim_order));
    }
    return ft::CreateNamedData(fbb, out.string(x.key), x.segment, layout);
  });
  return out.finish(ft::CreateFlatTensor(fbb, file.version, segments, entries),
                    ft::FlatTensorIdentifier());
}

}  // namespace

Result<ByteSourcePtr> assemble_flat_tensor(const FlatTensor& file, std::string name) {
  PTERO_ASSIGN_OR_RETURN(const SegmentPlan segments, plan_segments(file.segments));
  PTERO_ASSIGN_OR_RETURN(const std::vector<std::byte> flatbuffer, build(file, segments));
  const uint64_t segment_base =
      *checked_round_up(flatbuffer.size() + kPaddedHeaderSize, kSegmentAlignment);
  std::vector<std::byte> header;
  append_text(header, "FH01");
  append_u32(header, kFlatTensorHeaderSize);
  // As ExecuTorch writes it: where the flatbuffer would start behind the header, and its size
  // without the header, although its first 8 bytes are in front of the header.
  append_u64(header, kPaddedHeaderSize);
  append_u64(header, flatbuffer.size());
  append_u64(header, segment_base);
  append_u64(header, segments.data_size);
  header.resize(kPaddedHeaderSize);
  // Nothing follows an empty last segment; the file still reaches to the segment base.
  std::vector<std::byte> head = insert_header(flatbuffer, header);
  head.resize(static_cast<size_t>(segment_base));
  PTERO_ASSIGN_OR_RETURN(
      ByteSourcePtr written,
      compose_container(std::move(head), segment_base, segments, file.segments, std::move(name)));
  // The reader knows every rule of flat_tensor.h; nothing leaves here that it would refuse.
  PTERO_RETURN_IF_ERROR(read_flat_tensor(ByteRange::whole(written)),
                        "while checking the tensors to write");
  return written;
}

}  // namespace ptero::pte
