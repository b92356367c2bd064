// SPDX-License-Identifier: BSD-3-Clause
// Lies in .ptd and .bpte files, in data maps over several files, and in how a file is delivered.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "pte/bundled_reader.h"
#include "pte/corrupt_cases.h"
#include "pte/data_map.h"
#include "pte/delegate_reader.h"
#include "pte/flat_tensor_reader.h"
#include "pte/graph_reader.h"
#include "pte/program_reader.h"

namespace ptero::pte::test {
namespace {

namespace ft = fbs::flat_tensor;
namespace bp = fbs::bundled_program;

using Bytes = std::vector<std::byte>;

struct FileCorruption {
  const char* name;
  void (*lie)(Bytes&);
  const char* sentence;
  ErrorCode code = ErrorCode::invalid_program;
};

void put(Bytes& bytes, size_t offset, uint64_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

const ft::FlatTensor* ptd(Bytes& bytes) {
  return ft::GetFlatTensor(bytes.data());
}
const ft::NamedData* entry(Bytes& bytes, uint32_t index) {
  return ptd(bytes)->named_data()->Get(index);
}
const ft::TensorLayout* layout(Bytes& bytes) {
  return entry(bytes, 0)->tensor_layout();
}

constexpr FileCorruption kFlatTensorCorruptions[] = {
    {"ptd cut in its header", [](Bytes& file) { file.resize(47); },
     "The file (47 bytes) is shorter than the first 48 bytes of a .ptd file."},
    {"ptd identifier", [](Bytes& file) { file[5] = std::byte{'X'}; },
     "The file identifier is \"FX01\" where a .ptd file has \"FT01\"."},
    {"ptd magic", [](Bytes& file) { file[11] = std::byte{'2'}; },
     "The header's magic is \"FH02\" where a .ptd file has \"FH01\"."},
    {"ptd header length", [](Bytes& file) { file[12] = std::byte{39}; },
     "The length of the .ptd header (39) is below 40 bytes."},
    {"ptd flatbuffer wraps", [](Bytes& file) { put(file, 16, UINT64_MAX); },
     "The end of the flatbuffer (flatbuffer_offset 18446744073709551615 + flatbuffer_size "
     "{flatbuffer}) "
     "does not fit in 64 bits."},
    {"ptd flatbuffer too long", [](Bytes& file) { put(file, 24, 600); },
     "The flatbuffer (flatbuffer_offset 48, flatbuffer_size 600) leaves the file ({file} bytes)."},
    {"ptd base inside the flatbuffer", [](Bytes& file) { put(file, 32, 8); },
     "The .ptd header's segment_base_offset (8) is before the end of the flatbuffer ({end})."},
    {"ptd segments wrap", [](Bytes& file) { put(file, 40, UINT64_MAX); },
     "The end of the .ptd segments (segment_base_offset {base} + segment_data_size "
     "18446744073709551615) does not fit in 64 bits."},
    {"ptd without its last byte", [](Bytes& file) { file.pop_back(); },
     "The .ptd file ({file_cut} bytes) is cut off: its header places the end of the segments at "
     "{file}."},
    {"ptd without segments",
     [](Bytes& file) {
       put(file, 32, 0);
       put(file, 40, 0);
     },
     "The segment at offset 0 (16 bytes) leaves the segment data (0 bytes)."},
    {"ptd damaged", [](Bytes& file) { file[3] = std::byte{0x7f}; },
     "The flatbuffer of the .ptd file ({end} bytes) is damaged: it points outside of itself, nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"ptd version", [](Bytes& file) { set(ptd(file), ft::FlatTensor::VT_VERSION, uint32_t{2}); },
     "The .ptd schema version (2) is newer than the one that is known (0).",
     ErrorCode::unsupported},
    {"ptd entry without a key", [](Bytes& file) { drop(entry(file, 0), ft::NamedData::VT_KEY); },
     "The name FlatTensor.named_data.key is absent or empty."},
    {"ptd key twice", [](Bytes& file) { set_text(entry(file, 1)->key(), "x"); },
     "The key \"x\" is in the .ptd file twice."},
    {"ptd segment past the end",
     [](Bytes& file) { set(entry(file, 1), ft::NamedData::VT_SEGMENT_INDEX, uint32_t{2}); },
     "The id FlatTensor.named_data.segment_index (2) is not among the 2 segments."},
    {"ptd scalar type",
     [](Bytes& file) { set(layout(file), ft::TensorLayout::VT_SCALAR_TYPE, int8_t{9}); },
     "The scalar type (9) of the .ptd tensor has no size per element."},
    {"ptd tensor longer than its segment",
     [](Bytes& file) { set_item(layout(file)->sizes(), 0, int32_t{5}); },
     "The .ptd tensor of type float32 and sizes [5] does not fill its segment (16 bytes)."},
};

const bp::BundledProgram* bundle(Bytes& bytes) {
  return bp::GetBundledProgram(bytes.data());
}
const bp::BundledMethodTestSuite* suite(Bytes& bytes) {
  return bundle(bytes)->method_test_suites()->Get(0);
}
const bp::Value* input(Bytes& bytes, uint32_t index) {
  return suite(bytes)->test_cases()->Get(0)->inputs()->Get(index);
}

constexpr FileCorruption kBundleCorruptions[] = {
    {"bundle identifier", [](Bytes& file) { file[7] = std::byte{'7'}; },
     "The file identifier is \"BP07\" where a bundled program has \"BP08\"."},
    {"bundle damaged", [](Bytes& file) { file[3] = std::byte{0x7f}; },
     "The flatbuffer of the bundle ({file} bytes) is damaged: it points outside of itself, nests "
     "deeper than 24 levels or holds more than 1000000 tables."},
    {"bundle without a program",
     [](Bytes& file) { drop(bundle(file), bp::BundledProgram::VT_PROGRAM); },
     "The field BundledProgram.program is absent."},
    {"bundle method without a name",
     [](Bytes& file) { drop(suite(file), bp::BundledMethodTestSuite::VT_METHOD_NAME); },
     "The name BundledMethodTestSuite.method_name is absent or empty."},
    {"bundled value of type 5",
     [](Bytes& file) { set(input(file, 1), bp::Value::VT_VAL_TYPE, uint8_t{5}); },
     "The bundled value's type (5) is none that is known (1 to 4)."},
    {"bundled value without content", [](Bytes& file) { drop(input(file, 1), bp::Value::VT_VAL); },
     "The bundled value of type 2 has no content."},
    {"bundled tensor of type 16",
     [](Bytes& file) {
       set(input(file, 0)->val_as_Tensor(), bp::Tensor::VT_SCALAR_TYPE, int8_t{16});
     },
     "The scalar type (16) of the bundled tensor has no size per element."},
    {"bundled tensor without data",
     [](Bytes& file) { drop(input(file, 0)->val_as_Tensor(), bp::Tensor::VT_DATA); },
     "The bundled tensor of type float32 and sizes [4] has 0 bytes of data."},
    {"bundled tensor that claims more",
     [](Bytes& file) { set_item(input(file, 0)->val_as_Tensor()->sizes(), 0, INT32_MAX); },
     "The bundled tensor of type float32 and sizes [2147483647] has 16 bytes of data."},
};

// As in corrupt_test.cc: sizes that depend on the compiler.
std::string with_sizes(const char* sentence, const Bytes& bytes) {
  const auto number = [&](size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  return fmt::format(fmt::runtime(sentence), fmt::arg("file", bytes.size()),
                     fmt::arg("file_cut", bytes.size() - 1), fmt::arg("flatbuffer", number(24)),
                     fmt::arg("end", number(16) + number(24)), fmt::arg("base", number(32)));
}

template <size_t N>
void expect_files_rejected(const FileCorruption (&corruptions)[N], Bytes (*make)(),
                           Status (*read)(const ByteRange&)) {
  for (const FileCorruption& corruption : corruptions) {
    Bytes bytes = make();
    const std::string sentence = with_sizes(corruption.sentence, bytes);
    corruption.lie(bytes);
    expect_rejected(corruption.name, ByteRange::whole(borrow_bytes(bytes)), read, sentence,
                    corruption.code);
  }
}

template <auto kRead>
Status status_of(const ByteRange& file) {
  const auto result = kRead(file);
  return result.ok() ? ok_status() : Status(result.error());
}

// Gives the wanted first bytes, then zeros, without any memory behind them.
class PulledSource final : public ByteSource {
 public:
  PulledSource(Bytes head, uint64_t size) : head_(std::move(head)), size_(size) {}
  uint64_t size() const override { return size_; }
  Status read(uint64_t offset, std::span<std::byte> out) const override {
    PTERO_RETURN_IF_ERROR(check_range(offset, out.size()));
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = offset + i < head_.size() ? head_[static_cast<size_t>(offset) + i] : std::byte{0};
    }
    return ok_status();
  }
  const std::string& name() const override { return name_; }

 private:
  Bytes head_;
  uint64_t size_;
  std::string name_ = "pulled";
};

TEST_CASE("corrupt: .ptd files") {
  expect_files_rejected(kFlatTensorCorruptions, flat_tensor_file, status_of<read_flat_tensor>);
}

TEST_CASE("corrupt: .bpte files") {
  expect_files_rejected(kBundleCorruptions, bundled_file, status_of<read_bundled_program>);
}

TEST_CASE("corrupt: flatbuffers that are too large to map or to copy") {
  const ModelFile old({.inline_data = true});
  const auto pulled = [&](uint64_t size) {
    return ByteRange::whole(std::make_shared<PulledSource>(old.bytes, size));
  };
  expect_rejected("3 GB without segments", pulled(3'000'000'000), read_all,
                  "The flatbuffer of the program (3000000000 bytes) exceeds the limit (2147483646 "
                  "bytes).",
                  ErrorCode::invalid_program);
  expect_rejected("100 MB of flatbuffer, pulled", pulled(100'000'000), read_all,
                  "The flatbuffer of the program (100000000 bytes) exceeds the limit (67108864 "
                  "bytes) for one that is not aligned in mapped memory.",
                  ErrorCode::invalid_program);
  CHECK(read_program(pulled(old.bytes.size())).ok());
}

// Found by graph_fuzz: FlatBuffers' verifier aligns the length of a list, not its 8-byte elements.
// Under UBSan a plain load of one ends the program.
TEST_CASE("corrupt: lists of 8-byte numbers at odd multiples of 4") {
  const auto move_list = [](const void* table, flatbuffers::voffset_t slot) {
    uint8_t* field =
        const_cast<uint8_t*>(static_cast<const flatbuffers::Table*>(table)->GetAddressOf(slot));
    uint32_t offset = 0;
    std::memcpy(&offset, field, sizeof(offset));
    offset += 4;
    std::memcpy(field, &offset, sizeof(offset));
  };
  ModelFile file;
  // Its first element, 1, becomes the length; the second, -2, the upper half of the only element.
  move_list(file.graph_value(kGraphIntList)->value(), fbs::vkgraph::IntList::VT_ITEMS);
  const ByteRange whole = ByteRange::whole(borrow_bytes(file.bytes));
  const Result<Program> program = read_program(whole);
  REQUIRE(program.ok());
  DataMap data;
  REQUIRE(data.add(*program).ok());
  const Result<Delegate> delegate = read_delegate(program->segments[1]);
  REQUIRE(delegate.ok());
  const Result<Graph> graph = read_graph(*delegate, data);
  REQUIRE(graph.ok());
  CHECK(std::get<IntList>(graph->values[kGraphIntList]).items ==
        std::vector<int64_t>{-2 * (int64_t{1} << 32)});

  ModelFile plan;
  set_item(plan.plan()->non_const_buffer_sizes(), 0, int64_t{1});
  move_list(plan.plan(), fbs::program::ExecutionPlan::VT_NON_CONST_BUFFER_SIZES);
  expect_rejected("planned memories at an odd multiple of 4",
                  ByteRange::whole(borrow_bytes(plan.bytes)), read_all,
                  "The id NonConstBufferDevice.buffer_idx (1) is not among the 1 planned memories.",
                  ErrorCode::invalid_program);
}

TEST_CASE("corrupt: a graph that brings shaders") {
  ModelFile file;
  // The constants' list, in the place of the empty one.
  const auto* graph = file.graph();
  const auto* table = reinterpret_cast<const flatbuffers::Table*>(graph);
  const auto at = [&](flatbuffers::voffset_t slot) {
    return table->GetAddressOf(slot) - reinterpret_cast<const uint8_t*>(file.bytes.data());
  };
  const auto target = reinterpret_cast<const std::byte*>(graph->constants()) - file.bytes.data();
  file.put(static_cast<size_t>(at(fbs::vkgraph::VkGraph::VT_SHADERS)),
           static_cast<uint32_t>(target - at(fbs::vkgraph::VkGraph::VT_SHADERS)));
  expect_rejected("shaders of its own", ByteRange::whole(borrow_bytes(file.bytes)), read_all,
                  "The graph brings 5 shaders of its own.", ErrorCode::unsupported);
}

TEST_CASE("corrupt: lists in lists") {
  ModelFile file;
  // The int list becomes a second value list: same layout for its first field, other items.
  set(file.graph_value(kGraphIntList), fbs::vkgraph::VkValue::VT_VALUE_TYPE,
      static_cast<uint8_t>(fbs::vkgraph::GraphTypes::ValueList));
  const auto* items = file.graph_value(kGraphIntList)->value_as_ValueList()->items();
  set_item(items, 0, int32_t{kList});
  set_item(items, 1, int32_t{kSym});
  set_item(file.graph_value(kList)->value_as_ValueList()->items(), 0, int32_t{kGraphIntList});
  expect_rejected("two lists that contain each other", ByteRange::whole(borrow_bytes(file.bytes)),
                  read_all, "The ValueList (value 6) contains another ValueList (value 8).",
                  ErrorCode::invalid_program);
}

TEST_CASE("corrupt: graph tensor of rank 17") {
  ModelFile file;
  // Dims are plain numbers, so a longer list only has to end inside the buffer.
  set_length(file.graph_tensor(kBias)->dims(), 17);
  expect_rejected("17 dims", ByteRange::whole(borrow_bytes(file.bytes)), read_all,
                  "The rank (17) of a graph tensor exceeds the limit (16).",
                  ErrorCode::invalid_program);
}

}  // namespace
}  // namespace ptero::pte::test
