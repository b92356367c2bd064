// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program_reader.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/checked.h"
#include "pte/flatbuffer_input.h"
#include "pte/plan_reader.h"
#include "schema/program_generated.h"

namespace ptero::pte {
namespace {

namespace fb = fbs::program;

constexpr std::string_view kExtendedMagic = "eh00";
constexpr size_t kExtendedOffset = 8;  // behind root offset and identifier
// magic, length, program_size, segment_base_offset; segment_data_size is newer.
constexpr uint32_t kMinExtendedLength = 24;
constexpr uint32_t kFullExtendedLength = 32;
constexpr size_t kHeadSize = kExtendedOffset + kFullExtendedLength;

struct Head {
  std::array<std::byte, kHeadSize> bytes = {};
  size_t size = 0;

  std::string_view text(size_t offset, size_t count) const {
    return size < offset + count
               ? std::string_view()
               : std::string_view(reinterpret_cast<const char*>(bytes.data()) + offset, count);
  }
};

Result<Head> read_head(const ByteRange& file) {
  Head head;
  head.size = static_cast<size_t>(std::min<uint64_t>(file.size(), kHeadSize));
  PTERO_RETURN_IF_ERROR(file.read(0, std::span(head.bytes).first(head.size)));
  return head;
}

Result<ContainerLayout> read_layout(const ByteRange& file) {
  PTERO_ASSIGN_OR_RETURN(const Head head, read_head(file));
  PTERO_REJECT_IF(head.size < kExtendedOffset, invalid_program,
                  "The file ({} bytes) is shorter than the first {} bytes of a program.",
                  file.size(), kExtendedOffset);
  const std::string_view identifier = head.text(4, 4);
  PTERO_REJECT_IF(identifier != fb::ProgramIdentifier(), invalid_program,
                  "The file identifier is {:?} where a program has {:?}.", identifier,
                  fb::ProgramIdentifier());
  ContainerLayout layout;
  layout.flatbuffer_size = file.size();
  if (head.text(kExtendedOffset, 4) != kExtendedMagic) {
    return layout;
  }

  layout.extended_header = true;
  const uint32_t length =
      head.size < kExtendedOffset + 8 ? 0 : read_scalar<uint32_t>(head.bytes, kExtendedOffset + 4);
  PTERO_REJECT_IF(length < kMinExtendedLength, invalid_program,
                  "The length of the extended header ({}) is below {} bytes.", length,
                  kMinExtendedLength);
  PTERO_REJECT_IF(uint64_t{length} + kExtendedOffset > file.size(), invalid_program,
                  "The extended header ({} bytes at offset {}) leaves the file ({} bytes).", length,
                  kExtendedOffset, file.size());
  layout.flatbuffer_size = read_scalar<uint64_t>(head.bytes, 16);
  layout.segment_base_offset = read_scalar<uint64_t>(head.bytes, 24);
  if (length >= kFullExtendedLength) {
    layout.segment_data_size = read_scalar<uint64_t>(head.bytes, 32);
  }
  PTERO_REJECT_IF(layout.flatbuffer_size > file.size(), invalid_program,
                  "The header field program_size ({}) exceeds the file ({} bytes).",
                  layout.flatbuffer_size, file.size());
  PTERO_REJECT_IF(layout.flatbuffer_size < uint64_t{length} + kExtendedOffset, invalid_program,
                  "The header field program_size ({}) is below the end of the header itself ({}).",
                  layout.flatbuffer_size, uint64_t{length} + kExtendedOffset);
  if (layout.segment_base_offset == 0) {
    PTERO_REJECT_IF(layout.segment_data_size != 0, invalid_program,
                    "The header field segment_data_size ({}) is not 0 but segment_base_offset is.",
                    layout.segment_data_size);
    return layout;
  }
  PTERO_REJECT_IF(layout.segment_base_offset < layout.flatbuffer_size, invalid_program,
                  "The header field segment_base_offset ({}) is inside the flatbuffer ({} bytes).",
                  layout.segment_base_offset, layout.flatbuffer_size);
  PTERO_REJECT_IF(layout.segment_base_offset > file.size(), invalid_program,
                  "The header field segment_base_offset ({}) exceeds the file ({} bytes).",
                  layout.segment_base_offset, file.size());
  const std::optional<uint64_t> end =
      checked_add(layout.segment_base_offset, layout.segment_data_size);
  PTERO_REJECT_IF(!end, invalid_program,
                  "The end of the segments (segment_base_offset {} + segment_data_size {}) does "
                  "not fit in 64 bits.",
                  layout.segment_base_offset, layout.segment_data_size);
  PTERO_REJECT_IF(*end > file.size(), invalid_program,
                  "The file ({} bytes) is cut off: its header places the end of the segments at "
                  "{}.",
                  file.size(), *end);
  return layout;
}

Status read_segments(const fb::Program& in, const ByteRange& file, FieldReader& reader,
                     Program& program) {
  if (in.segments() == nullptr || in.segments()->size() == 0) {
    return ok_status();
  }
  const ContainerLayout& layout = program.layout;
  PTERO_RETURN_IF_ERROR(reader.charge(in.segments()->size(), sizeof(ByteRange)));
  if (layout.segment_base_offset == 0) {
    // The exporter lists an empty constant segment and leaves the header out.
    for (const fb::DataSegment* segment : *in.segments()) {
      PTERO_REJECT_IF(segment->size() != 0, invalid_program,
                      "The program lists {} segments but its header has no segment base.",
                      in.segments()->size());
    }
    program.segments.resize(in.segments()->size());
    return ok_status();
  }
  const uint64_t data_size = layout.segment_data_size != 0
                                 ? layout.segment_data_size
                                 : file.size() - layout.segment_base_offset;
  PTERO_ASSIGN_OR_RETURN(const ByteRange base,
                         file.subrange(layout.segment_base_offset, data_size));
  program.segments.reserve(in.segments()->size());
  for (const fb::DataSegment* segment : *in.segments()) {
    PTERO_ASSIGN_OR_RETURN(ByteRange range, read_segment(base, segment->offset(), segment->size()),
                           "while reading segment {}", program.segments.size());
    program.segments.push_back(std::move(range));
  }
  return ok_status();
}

// Data inside the flatbuffer: constants and delegates of older exporters.
Status read_inline_data(const fb::Program& in, const FlatbufferBytes& bytes, FieldReader& reader,
                        Program& program) {
  if (const auto* buffers = in.constant_buffer()) {
    PTERO_RETURN_IF_ERROR(reader.charge(buffers->size(), sizeof(ByteRange)));
    for (const fb::Buffer* buffer : *buffers) {
      program.constant_buffer.push_back(bytes.range_of(buffer->storage()));
    }
  }
  if (const auto* list = in.backend_delegate_data()) {
    PTERO_RETURN_IF_ERROR(reader.charge(list->size(), sizeof(ByteRange)));
    for (const fb::BackendDelegateInlineData* data : *list) {
      PTERO_RETURN_IF_ERROR(reader.check_present(data->data(), "BackendDelegateInlineData.data"));
      program.inline_delegate_data.push_back(bytes.range_of(data->data()));
    }
  }
  return ok_status();
}

Result<SubsegmentOffsets> read_offsets(const fb::SubsegmentOffsets& in, const Program& program,
                                       FieldReader& reader) {
  SubsegmentOffsets out;
  PTERO_ASSIGN_OR_RETURN(out.offsets, reader.read_numbers<uint64_t>(in.offsets()));
  if (out.offsets.empty()) {
    return out;
  }
  PTERO_ASSIGN_OR_RETURN(out.segment,
                         reader.read_id(in.segment_index(), program.segments.size(),
                                        "SubsegmentOffsets.segment_index", "segments"));
  const uint64_t size = program.segments[out.segment].size();
  for (size_t i = 0; i < out.offsets.size(); ++i) {
    PTERO_REJECT_IF(out.offsets[i] > size, invalid_program,
                    "The offset ({}) of data buffer {} exceeds its segment ({} bytes).",
                    out.offsets[i], i, size);
  }
  return out;
}

Status read_data_segments(const fb::Program& in, FieldReader& reader, Program& program) {
  if (in.constant_segment() != nullptr) {
    PTERO_ASSIGN_OR_RETURN(program.constant_segment,
                           read_offsets(*in.constant_segment(), program, reader),
                           "while reading the constant segment");
    const size_t offsets = program.constant_segment->offsets.size();
    PTERO_REJECT_IF(offsets != 0 && !program.constant_buffer.empty(), invalid_program,
                    "The program has both {} constant buffers and {} offsets of a constant "
                    "segment.",
                    program.constant_buffer.size(), offsets);
  }
  if (const auto* list = in.mutable_data_segments()) {
    PTERO_RETURN_IF_ERROR(reader.charge(list->size(), sizeof(SubsegmentOffsets)));
    std::unordered_set<uint32_t> used;
    for (const fb::SubsegmentOffsets* entry : *list) {
      const size_t index = program.mutable_data_segments.size();
      PTERO_ASSIGN_OR_RETURN(SubsegmentOffsets offsets, read_offsets(*entry, program, reader),
                             "while reading mutable data segment {}", index);
      PTERO_REJECT_IF(!offsets.offsets.empty() && !used.insert(offsets.segment).second,
                      invalid_program, "Two mutable data segments use the same segment ({}).",
                      offsets.segment);
      program.mutable_data_segments.push_back(std::move(offsets));
    }
  }
  return ok_status();
}

Status read_named_data(const fb::Program& in, FieldReader& reader, Program& program) {
  if (in.named_data() == nullptr) {
    return ok_status();
  }
  PTERO_RETURN_IF_ERROR(reader.charge(in.named_data()->size(), sizeof(NamedData)));
  program.named_data.reserve(in.named_data()->size());  // keys are looked at while it grows
  std::unordered_set<std::string_view> keys;
  for (const fb::NamedData* entry : *in.named_data()) {
    NamedData named;
    PTERO_ASSIGN_OR_RETURN(named.key, reader.read_name(entry->key(), "NamedData.key"),
                           "while reading named data {}", program.named_data.size());
    PTERO_ASSIGN_OR_RETURN(named.segment,
                           reader.read_id(entry->segment_index(), program.segments.size(),
                                          "NamedData.segment_index", "segments"),
                           "while reading named data {:?}", named.key);
    program.named_data.push_back(std::move(named));
    const std::string& key = program.named_data.back().key;
    PTERO_REJECT_IF(!keys.insert(key).second, invalid_program,
                    "The key {:?} is in the program's named data twice.", key);
  }
  return ok_status();
}

Status read_plans(const fb::Program& in, FieldReader& reader, Program& program) {
  PTERO_RETURN_IF_ERROR(reader.check_present(in.execution_plan(), "Program.execution_plan"));
  const size_t count = in.execution_plan()->size();
  PTERO_REJECT_IF(count == 0, invalid_program, "The program has no execution plan.");
  PTERO_REJECT_IF(count > kMaxPlans, invalid_program,
                  "The number of execution plans ({}) exceeds the limit ({}).", count, kMaxPlans);
  PTERO_RETURN_IF_ERROR(reader.charge(count, sizeof(ExecutionPlan)));
  program.plans.reserve(count);
  for (const fb::ExecutionPlan* entry : *in.execution_plan()) {
    PTERO_ASSIGN_OR_RETURN(ExecutionPlan plan, read_plan(*entry, program, reader),
                           "while reading execution plan {}", program.plans.size());
    PTERO_REJECT_IF(find_plan(program, plan.name) != nullptr, invalid_program,
                    "The method {:?} is in the program twice.", plan.name);
    program.plans.push_back(std::move(plan));
  }
  return ok_status();
}

}  // namespace

Result<Program> read_program(const ByteRange& file) {
  Program program;
  PTERO_ASSIGN_OR_RETURN(program.layout, read_layout(file));
  PTERO_ASSIGN_OR_RETURN(const ByteRange flatbuffer,
                         file.subrange(0, program.layout.flatbuffer_size));
  PTERO_ASSIGN_OR_RETURN(const FlatbufferBytes bytes, FlatbufferBytes::load(flatbuffer, "program"));
  PTERO_ASSIGN_OR_RETURN(const fb::Program* in, verified_root<fb::Program>(bytes, "program"));
  program.version = in->version();
  PTERO_REJECT_IF(program.version != 0, unsupported,
                  "The program's schema version ({}) is newer than the one that is known (0).",
                  program.version);
  FieldReader reader("program");
  PTERO_RETURN_IF_ERROR(read_segments(*in, file, reader, program));
  PTERO_RETURN_IF_ERROR(read_inline_data(*in, bytes, reader, program));
  PTERO_RETURN_IF_ERROR(read_data_segments(*in, reader, program));
  PTERO_RETURN_IF_ERROR(read_named_data(*in, reader, program));
  PTERO_RETURN_IF_ERROR(read_plans(*in, reader, program));
  return program;
}

Result<FileKind> file_kind(const ByteRange& file) {
  PTERO_ASSIGN_OR_RETURN(const Head head, read_head(file));
  const std::string_view identifier = head.text(4, 4);
  if (identifier == fb::ProgramIdentifier()) {
    return FileKind::program;
  }
  if (identifier == "BP08") {
    return FileKind::bundled_program;
  }
  return identifier == "FT01" ? FileKind::flat_tensor : FileKind::unknown;
}

}  // namespace ptero::pte
