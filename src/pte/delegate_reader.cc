// SPDX-License-Identifier: BSD-3-Clause
#include "pte/delegate_reader.h"

#include <array>
#include <string_view>

#include "pte/flatbuffer_input.h"

namespace ptero::pte {
namespace {

constexpr std::string_view kMagic = "VH00";
constexpr size_t kMagicOffset = 4;
constexpr size_t kHeaderSize = 30;

}  // namespace

Result<Delegate> read_delegate(const ByteRange& blob) {
  PTERO_REJECT_IF(blob.size() < kHeaderSize, invalid_program,
                  "The delegate ({} bytes) is shorter than its VH00 header ({} bytes).",
                  blob.size(), kHeaderSize);
  std::array<std::byte, kHeaderSize> header;
  PTERO_RETURN_IF_ERROR(blob.read(0, header));
  const std::string_view magic(reinterpret_cast<const char*>(header.data()) + kMagicOffset,
                               kMagic.size());
  PTERO_REJECT_IF(magic != kMagic, unsupported, "The delegate's magic is {:?} instead of {:?}.",
                  magic, kMagic);
  Delegate delegate;
  delegate.header_size = read_scalar<uint16_t>(header, 8);
  const uint64_t graph_offset = read_scalar<uint32_t>(header, 10);
  const uint64_t graph_size = read_scalar<uint32_t>(header, 14);
  const uint64_t constants_offset = read_scalar<uint32_t>(header, 18);
  uint64_t constants_size = read_scalar<uint64_t>(header, 22);
  PTERO_REJECT_IF(delegate.header_size < kHeaderSize, invalid_program,
                  "The header field header_size ({}) is below {}.", delegate.header_size,
                  kHeaderSize);
  PTERO_REJECT_IF(graph_offset < delegate.header_size, invalid_program,
                  "The header field flatbuffer_offset ({}) is inside the header ({} bytes).",
                  graph_offset, delegate.header_size);
  PTERO_REJECT_IF(graph_size == 0, invalid_program, "The header field flatbuffer_size is 0.");
  // Two 32-bit numbers: the sum fits.
  const uint64_t graph_end = graph_offset + graph_size;
  PTERO_REJECT_IF(graph_end > blob.size(), invalid_program,
                  "The graph (flatbuffer_offset {}, flatbuffer_size {}) leaves the delegate ({} "
                  "bytes).",
                  graph_offset, graph_size, blob.size());
  PTERO_REJECT_IF(constants_offset < graph_end, invalid_program,
                  "The header field bytes_offset ({}) is before the end of the graph ({}).",
                  constants_offset, graph_end);
  PTERO_REJECT_IF(constants_offset > blob.size(), invalid_program,
                  "The header field bytes_offset ({}) exceeds the delegate ({} bytes).",
                  constants_offset, blob.size());
  if (constants_size == 0) {
    constants_size = blob.size() - constants_offset;  // older writers leave the size out
  }
  PTERO_REJECT_IF(constants_size > blob.size() - constants_offset, invalid_program,
                  "The header field bytes_size ({}) exceeds the {} bytes behind bytes_offset ({}).",
                  constants_size, blob.size() - constants_offset, constants_offset);
  PTERO_ASSIGN_OR_RETURN(delegate.graph, blob.subrange(graph_offset, graph_size));
  PTERO_ASSIGN_OR_RETURN(delegate.constants, blob.subrange(constants_offset, constants_size));
  return delegate;
}

}  // namespace ptero::pte
