// SPDX-License-Identifier: BSD-3-Clause
// Lies in the extended header, the segments and the lists of the program itself.
#include "pte/corrupt_cases.h"

namespace ptero::pte::test {
namespace {

namespace fb = fbs::program;

constexpr size_t kLengthAt = 12;
constexpr size_t kProgramSizeAt = 16;
constexpr size_t kBaseAt = 24;
constexpr size_t kDataSizeAt = 32;

const fb::DataSegment* segment(ModelFile& file, uint32_t index) {
  return file.program()->segments()->Get(index);
}

const fb::SubsegmentOffsets* mutable_segment(ModelFile& file, uint32_t index) {
  return file.program()->mutable_data_segments()->Get(index);
}

const fb::NamedData* named(ModelFile& file, uint32_t index) {
  return file.program()->named_data()->Get(index);
}

constexpr Corruption kCorruptions[] = {
    {"empty file", [](ModelFile& file) { file.bytes.clear(); },
     "The file (0 bytes) is shorter than the first 8 bytes of a program."},
    {"seven bytes", [](ModelFile& file) { file.bytes.resize(7); },
     "The file (7 bytes) is shorter than the first 8 bytes of a program."},
    {"another file type", [](ModelFile& file) { file.put(4, 0x46554747); },
     "The file identifier is \"GGUF\" where a program has \"ET12\"."},
    {"identifier of control characters", [](ModelFile& file) { file.put(4, 0x42410a22); },
     "The file identifier is \"\\\"\\nAB\" where a program has \"ET12\"."},
    {"header length too small", [](ModelFile& file) { file.put(kLengthAt, 23); },
     "The length of the extended header (23) is below 24 bytes."},
    {"file ends in the header's magic", [](ModelFile& file) { file.bytes.resize(12); },
     "The length of the extended header (0) is below 24 bytes."},
    {"file ends in the header", [](ModelFile& file) { file.bytes.resize(39); },
     "The extended header (32 bytes at offset 8) leaves the file (39 bytes)."},
    {"header length negative", [](ModelFile& file) { file.put(kLengthAt, UINT32_MAX); },
     "The extended header (4294967295 bytes at offset 8) leaves the file ({file} bytes)."},
    {"program size of all ones", [](ModelFile& file) { file.put(kProgramSizeAt, UINT64_MAX); },
     "The header field program_size (18446744073709551615) exceeds the file ({file} bytes)."},
    {"program size zero", [](ModelFile& file) { file.put(kProgramSizeAt, uint64_t{0}); },
     "The header field program_size (0) is below the end of the header itself (40)."},
    {"program size cuts the flatbuffer",
     [](ModelFile& file) { file.put(kProgramSizeAt, uint64_t{64}); },
     "The flatbuffer of the program (64 bytes) is damaged: it points outside of itself, nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"segment base inside the flatbuffer", [](ModelFile& file) { file.put(kBaseAt, uint64_t{16}); },
     "The header field segment_base_offset (16) is inside the flatbuffer ({flatbuffer} bytes)."},
    {"segment base of all ones", [](ModelFile& file) { file.put(kBaseAt, UINT64_MAX); },
     "The header field segment_base_offset (18446744073709551615) exceeds the file ({file} "
     "bytes)."},
    {"segment data size wraps", [](ModelFile& file) { file.put(kDataSizeAt, UINT64_MAX); },
     "The end of the segments (segment_base_offset {base} + segment_data_size "
     "18446744073709551615) "
     "does not fit in 64 bits."},
    {"last byte missing", [](ModelFile& file) { file.bytes.pop_back(); },
     "The file ({file_cut} bytes) is cut off: its header places the end of the segments at "
     "{file}."},
    {"segment data without a base", [](ModelFile& file) { file.put(kBaseAt, uint64_t{0}); },
     "The header field segment_data_size ({data}) is not 0 but segment_base_offset is."},
    {"segments without a base",
     [](ModelFile& file) {
       file.put(kBaseAt, uint64_t{0});
       file.put(kDataSizeAt, uint64_t{0});
     },
     "The program lists 6 segments but its header has no segment base."},

    {"root offset of all ones", [](ModelFile& file) { file.put(0, UINT32_MAX); },
     "The flatbuffer of the program ({flatbuffer} bytes) is damaged: it points outside of itself, "
     "nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"root offset zero", [](ModelFile& file) { file.put(0, 0); },
     "The flatbuffer of the program ({flatbuffer} bytes) is damaged: it points outside of itself, "
     "nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"vector longer than the file",
     [](ModelFile& file) { set_length(file.plan()->values(), UINT32_MAX); },
     "The flatbuffer of the program ({flatbuffer} bytes) is damaged: it points outside of itself, "
     "nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"string that does not end",
     [](ModelFile& file) { set_length(file.plan()->name(), 0x7fffffff); },
     "The flatbuffer of the program ({flatbuffer} bytes) is damaged: it points outside of itself, "
     "nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"1.2 million uses of two tables",
     [](ModelFile& file) { file = ModelFile({.shared_calls = 600'000}); },
     "The flatbuffer of the program ({flatbuffer} bytes) is damaged: it points outside of itself, "
     "nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"1,000 uses of a list of 100,000",
     [](ModelFile& file) { file = ModelFile({.shared_calls = 1000, .shared_call_args = 100'000}); },
     "The program decodes to more than the limit (33554432 bytes): it repeats its parts."},
    {"schema version 1",
     [](ModelFile& file) { set(file.program(), fb::Program::VT_VERSION, uint32_t{1}); },
     "The program's schema version (1) is newer than the one that is known (0).",
     ErrorCode::unsupported},

    {"segment end wraps",
     [](ModelFile& file) {
       set(segment(file, 1), fb::DataSegment::VT_OFFSET, UINT64_MAX - 7);
       set(segment(file, 1), fb::DataSegment::VT_SIZE, uint64_t{32});
     },
     "The end of the segment at offset 18446744073709551608 (32 bytes) does not fit in 64 bits."},
    {"segment offset -1 and size 0",
     [](ModelFile& file) {
       set(segment(file, 1), fb::DataSegment::VT_OFFSET, UINT64_MAX);
       set(segment(file, 1), fb::DataSegment::VT_SIZE, uint64_t{0});
     },
     "The segment at offset 18446744073709551615 (0 bytes) leaves the segment data ({data} "
     "bytes)."},
    {"segment one byte too long",
     [](ModelFile& file) { set(segment(file, 5), fb::DataSegment::VT_SIZE, uint64_t{17}); },
     "The segment at offset {last} (17 bytes) leaves the segment data ({data} bytes)."},

    {"inline delegate without bytes",
     [](ModelFile& file) {
       file = ModelFile({.inline_data = true});
       drop(file.program()->backend_delegate_data()->Get(0),
            fb::BackendDelegateInlineData::VT_DATA);
     },
     "The field BackendDelegateInlineData.data is absent."},
    {"constant segment past the end",
     [](ModelFile& file) {
       set(file.program()->constant_segment(), fb::SubsegmentOffsets::VT_SEGMENT_INDEX,
           uint32_t{6});
     },
     "The id SubsegmentOffsets.segment_index (6) is not among the 6 segments."},
    {"constant offset behind its segment",
     [](ModelFile& file) {
       set_item(file.program()->constant_segment()->offsets(), 1, uint64_t{33});
     },
     "The offset (33) of data buffer 1 exceeds its segment (32 bytes)."},
    {"mutable offset behind its segment",
     [](ModelFile& file) { set_item(mutable_segment(file, 0)->offsets(), 0, UINT64_MAX); },
     "The offset (18446744073709551615) of data buffer 0 exceeds its segment (16 bytes)."},
    {"two places for constants",
     [](ModelFile& file) { file = ModelFile({.both_constants = true}); },
     "The program has both 2 constant buffers and 2 offsets of a constant segment."},
    {"two mutable lists in one segment",
     [](ModelFile& file) {
       set(mutable_segment(file, 1), fb::SubsegmentOffsets::VT_SEGMENT_INDEX, uint32_t{2});
     },
     "Two mutable data segments use the same segment (2)."},

    {"named data without a key",
     [](ModelFile& file) { drop(named(file, 1), fb::NamedData::VT_KEY); },
     "The name NamedData.key is absent or empty."},
    {"named data with the same key",
     [](ModelFile& file) { set_text(named(file, 1)->key(), "weight"); },
     "The key \"weight\" is in the program's named data twice."},
    {"named data past the segments",
     [](ModelFile& file) { set(named(file, 1), fb::NamedData::VT_SEGMENT_INDEX, UINT32_MAX); },
     "The id NamedData.segment_index (4294967295) is not among the 6 segments."},

    {"no list of plans",
     [](ModelFile& file) { drop(file.program(), fb::Program::VT_EXECUTION_PLAN); },
     "The field Program.execution_plan is absent."},
    {"no plan", [](ModelFile& file) { set_length(file.program()->execution_plan(), 0); },
     "The program has no execution plan."},
    {"100,000 plans", [](ModelFile& file) { file = ModelFile({.plans = 100'000}); },
     "The number of execution plans (100000) exceeds the limit (4096)."},
    {"two methods of one name",
     [](ModelFile& file) { set_text(file.program()->execution_plan()->Get(1)->name(), "forward"); },
     "The method \"forward\" is in the program twice."},
    {"method name of 5,000 bytes",
     [](ModelFile& file) { file = ModelFile({.method_name_size = 5000}); },
     "The name ExecutionPlan.name (5000 bytes) exceeds the limit (4096 bytes)."},
};

}  // namespace

std::span<const Corruption> container_corruptions() {
  return kCorruptions;
}

}  // namespace ptero::pte::test
