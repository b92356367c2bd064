// SPDX-License-Identifier: BSD-3-Clause
// Programs, graphs and tensors made by hand: what no exporter's file shows, and what is refused.
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/composed_source.h"
#include "pte/delegate_reader.h"
#include "pte/delegate_writer.h"
#include "pte/flat_tensor_reader.h"
#include "pte/flat_tensor_writer.h"
#include "pte/graph_reader.h"
#include "pte/limits.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace ptero::pte {
namespace {

template <typename T>
T take(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().to_string()));
  return std::move(result).value();
}

ByteRange filled(size_t size, int value) {
  return ByteRange::whole(own_bytes(std::vector<std::byte>(size, std::byte(value))));
}

std::vector<std::byte> bytes_of(const ByteRange& range) {
  return take(range.copy(1 << 20));
}

uint64_t number_at(const std::vector<std::byte>& bytes, size_t offset, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= std::to_integer<uint64_t>(bytes[offset + i]) << (8 * i);
  }
  return value;
}

std::string text_at(const std::vector<std::byte>& bytes, size_t offset, size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

// Every kind of value and instruction, inline data, segments, named data.
Program full_program() {
  Program program;
  program.segments = {filled(0, 0), filled(300, 1), filled(16, 2), filled(5, 3)};
  program.constant_segment = SubsegmentOffsets{1, {0, 0, 128}};
  program.mutable_data_segments = {{2, {0, 0}}};
  program.named_data = {{"weight", 3}};
  program.inline_delegate_data = {filled(33, 4)};

  ExecutionPlan plan;
  plan.name = "forward";
  plan.container = ContainerMetadata{"[in]", "[out]"};
  const Tensor input{.sizes = {2, 3}, .dim_order = {0, 1}, .dynamism = ShapeDynamism::bounded};
  Tensor constant{.sizes = {4, 2}, .dim_order = {1, 0}, .data_buffer = 2, .requires_grad = true};
  Tensor planned{.scalar_type = ScalarType::int64, .sizes = {}, .dim_order = {}};
  planned.allocation = Allocation{1, 8};
  Tensor state{.sizes = {4}, .dim_order = {0}, .data_buffer = 1};
  state.allocation = Allocation{1, 32};
  state.extra = ExtraTensorInfo{.fully_qualified_name = "total"};
  Tensor external{.sizes = {1}, .dim_order = {0}};
  external.extra = ExtraTensorInfo{.fully_qualified_name = "weight", .external = true};
  plan.values = {Null{},
                 int64_t{-5},
                 true,
                 0.1,
                 input,
                 std::string("text \x01"),
                 IntIdList{{1, 1}},
                 DoubleList{{1.5, -0.0}},
                 BoolList{{true, false, true}},
                 TensorIdList{{4, 11}},
                 OptionalTensorIdList{{4, 0}},
                 planned,
                 constant,
                 state,
                 external,
                 false};
  plan.inputs = {4, 2};
  plan.outputs = {11};
  plan.operators = {{"aten::add", "out"}, {"aten::neg", ""}};
  plan.delegates = {{.id = "OtherBackend",
                     .location = DataLocation::inlined,
                     .index = 0,
                     .compile_specs = {{"key", {std::byte{7}}}, {"empty", {}}}}};
  Chain chain;
  chain.instructions = {KernelCall{1, {4, 11}}, DelegateCall{0, {4, 11}}, MoveCall{1, 1},
                        JumpFalseCall{2, 5}, FreeCall{11}};
  chain.stacktrace.resize(5);
  chain.stacktrace[0] = {{"a.py", 12, "f", "x + 1"}, {"b.py", -1, "", ""}};
  plan.chains = {chain};
  plan.non_const_buffer_sizes = {0, 64};
  plan.non_const_buffer_devices = {{1, DeviceType::cpu, 0}};
  program.plans = {plan};
  return program;
}

TEST_CASE("writer: a program with everything in it comes back as it was") {
  const Program program = full_program();
  const ByteSourcePtr file = take(assemble_program(program));
  const Program again = take(read_program(ByteRange::whole(file)));
  REQUIRE(again.plans.size() == 1);
  const ExecutionPlan& a = program.plans[0];
  const ExecutionPlan& b = again.plans[0];
  CHECK(a.values == b.values);
  CHECK(a.chains == b.chains);
  CHECK(a.operators == b.operators);
  CHECK(a.delegates == b.delegates);
  CHECK(a.container == b.container);
  CHECK(a.inputs == b.inputs);
  CHECK(a.outputs == b.outputs);
  CHECK(a.non_const_buffer_sizes == b.non_const_buffer_sizes);
  CHECK(a.non_const_buffer_devices == b.non_const_buffer_devices);
  CHECK(program.constant_segment == again.constant_segment);
  CHECK(program.mutable_data_segments == again.mutable_data_segments);
  CHECK(program.named_data == again.named_data);
  REQUIRE(again.segments.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(bytes_of(program.segments[i]) == bytes_of(again.segments[i]));
  }
  REQUIRE(again.inline_delegate_data.size() == 1);
  CHECK(bytes_of(again.inline_delegate_data[0]) == std::vector<std::byte>(33, std::byte{4}));
}

TEST_CASE("writer: the container is laid out as the format says") {
  const ByteSourcePtr file = take(assemble_program(full_program()));
  const std::vector<std::byte> bytes = bytes_of(ByteRange::whole(file));
  CHECK(text_at(bytes, 4, 4) == "ET12");
  CHECK(text_at(bytes, 8, 4) == "eh00");
  CHECK(number_at(bytes, 12, 4) == 32);
  const uint64_t program_size = number_at(bytes, 16, 8);
  const uint64_t base = number_at(bytes, 24, 8);
  CHECK(base % 128 == 0);
  CHECK(base >= program_size);
  CHECK(base - program_size < 128);
  // Four segments of 0, 300, 16 and 5 bytes, each at a multiple of 128.
  CHECK(number_at(bytes, 32, 8) == 512 + 5);
  CHECK(bytes.size() == base + 512 + 5);
  CHECK(bytes[base] == std::byte{1});
  CHECK(bytes[base + 300] == std::byte{0});
  CHECK(bytes[base + 384] == std::byte{2});
  CHECK(bytes[base + 512] == std::byte{3});

  const Program again = take(read_program(ByteRange::whole(file)));
  CHECK(again.inline_delegate_data[0].offset() % 16 == 0);
  // Nothing in it depends on when or where it was made.
  CHECK(bytes == bytes_of(ByteRange::whole(take(assemble_program(full_program(), "other")))));
}

TEST_CASE("writer: without segment bytes there is no extended header") {
  Program program;
  program.segments = {filled(0, 0)};
  program.constant_segment = SubsegmentOffsets{0, {0}};
  program.plans.push_back({.name = "answer", .values = {int64_t{42}}, .outputs = {0}});
  const ByteSourcePtr file = take(assemble_program(program));
  CHECK(text_at(bytes_of(ByteRange::whole(file)), 8, 4) != "eh00");
  const Program again = take(read_program(ByteRange::whole(file)));
  CHECK_FALSE(again.layout.extended_header);
  CHECK(again.segments.size() == 1);
}

TEST_CASE("writer: segments are pulled when the file is read, not before") {
  Program program = full_program();
  bool touched = false;
  constexpr uint64_t kHuge = uint64_t{1} << 40;  // nobody has a TiB to hold
  program.segments.push_back(ByteRange::whole(generate_bytes(kHuge, [&](uint64_t, auto out) {
    touched = true;
    std::memset(out.data(), 9, out.size());
    return ok_status();
  })));
  const ByteSourcePtr file = take(assemble_program(program));
  CHECK_FALSE(touched);
  CHECK(file->size() > kHuge);
  std::byte last{};
  REQUIRE(file->read(file->size() - 1, {&last, 1}).ok());
  CHECK(touched);
  CHECK(last == std::byte{9});
}

TEST_CASE("writer: what a reader would refuse is not written") {
  const auto refusal = [](auto change) {
    Program program = full_program();
    change(program);
    const Result<ByteSourcePtr> file = assemble_program(program);
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().code() == ErrorCode::invalid_program);
    CHECK(file.error().context().back() == "while checking the program to write");
    return file.error().message();
  };
  const std::string ids = refusal([](Program& p) { p.plans[0].outputs = {99}; });
  CHECK(ids.find("99") != std::string::npos);
  // 2^31 does not fit in the file's signed ids.
  refusal([](Program& p) { p.plans[0].inputs = {uint32_t{1} << 31}; });
  refusal([](Program& p) { p.plans[0].non_const_buffer_sizes[1] = UINT64_MAX; });
  refusal([](Program& p) { p.named_data.push_back({"weight", 0}); });
  refusal([](Program& p) { p.plans.clear(); });

  Program program = full_program();
  program.segments.push_back(ByteRange::whole(
      generate_bytes(UINT64_MAX - 100, [](uint64_t, auto) { return ok_status(); })));
  CHECK(assemble_program(program).error().message() ==
        "The segments together exceed the limit of the file format (18446744073709551615 bytes).");

  Program inlined = full_program();
  inlined.constant_segment.reset();
  inlined.constant_buffer = {ByteRange::whole(
      generate_bytes(uint64_t{1} << 31, [](uint64_t, auto) { return ok_status(); }))};
  CHECK(assemble_program(inlined).error().message() ==
        fmt::format("The part of the file outside of its segments exceeds the limit ({} bytes); "
                    "large constants and delegates belong in segments.",
                    kMaxFlatbufferSize));
}

TEST_CASE("writer: an inline source that fails gives its own error") {
  Program program = full_program();
  program.inline_delegate_data = {ByteRange::whole(generate_bytes(
      8, [](uint64_t, auto) { return Status(make_error(ErrorCode::io, "The line is cut.")); }))};
  CHECK(assemble_program(program).error().message() == "The line is cut.");
}

Graph full_graph() {
  Graph graph;
  graph.version = "0";
  graph.constants = {{"weight", kNamedDataOffset, filled(24, 1)}, {"", 0, filled(8, 2)}};
  graph.values = {GraphTensor{.dims = {2, 3}, .mem_obj_id = 0},
                  GraphTensor{.dims = {2, 3}, .constant_id = 0},
                  int64_t{1},
                  GraphTensor{.dims = {2, 3},
                              .storage = StorageType::texture_3d,
                              .layout = MemoryLayout::width_packed,
                              .staging_dtype = GraphDtype::float32},
                  Null{},
                  0.5,
                  false,
                  IntList{{-1, INT64_MAX}},
                  DoubleList{{0.25}},
                  BoolList{{true}},
                  ValueIdList{{0, 4}},
                  std::string("none"),
                  SymInt{3},
                  GraphTensor{.dims = {2}, .constant_id = 1, .mem_obj_id = 0}};
  graph.chain = {{7, "aten.add.Tensor", {0, 1, 2, 3}}};
  graph.inputs = {0, 12};
  graph.outputs = {3};
  return graph;
}

TEST_CASE("writer: a graph with everything in it comes back as it was") {
  Graph graph = full_graph();
  const ByteSourcePtr inlined = take(pack_inline_constants(graph));
  const ByteSourcePtr blob = take(assemble_delegate(graph, ByteRange::whole(inlined)));
  const Delegate parts = take(read_delegate(ByteRange::whole(blob)));
  FlatTensor weights;
  weights.segments = {filled(24, 1)};
  weights.entries = {{"weight", 0, std::nullopt}};
  DataMap data;
  REQUIRE(data.add(weights).ok());
  const Graph again = take(read_graph(parts, data));
  CHECK(again.values == graph.values);
  CHECK(again.chain == graph.chain);
  CHECK(again.inputs == graph.inputs);
  CHECK(again.outputs == graph.outputs);
  REQUIRE(again.constants.size() == 2);
  CHECK(same_reference(again.constants[0], graph.constants[0]));
  CHECK(bytes_of(again.constants[1].data) == std::vector<std::byte>(8, std::byte{2}));
}

TEST_CASE("writer: a delegate is laid out as the format says") {
  Graph graph = full_graph();
  const ByteSourcePtr inlined = take(pack_inline_constants(graph));
  const ByteSourcePtr blob = take(assemble_delegate(graph, ByteRange::whole(inlined)));
  const std::vector<std::byte> bytes = bytes_of(ByteRange::whole(blob));
  CHECK(number_at(bytes, 0, 4) == 0);
  CHECK(text_at(bytes, 4, 4) == "VH00");
  CHECK(number_at(bytes, 8, 2) == 30);
  CHECK(number_at(bytes, 10, 4) == 32);
  const uint64_t flatbuffer_size = number_at(bytes, 14, 4);
  CHECK(text_at(bytes, 32 + 4, 4) == "VK00");
  CHECK(number_at(bytes, 18, 4) == (32 + flatbuffer_size + 15) / 16 * 16);
  CHECK(number_at(bytes, 22, 8) == 16);
  CHECK(bytes.size() == number_at(bytes, 18, 4) + 16);
  CHECK(bytes[number_at(bytes, 18, 4)] == std::byte{2});
}

TEST_CASE("writer: constants inside of a delegate are placed one behind the other") {
  Graph graph;
  graph.constants = {{"", 0, filled(20, 1)}, {"", 0, filled(0, 0)}, {"", 0, filled(4, 2)}};
  const ByteSourcePtr inlined = take(pack_inline_constants(graph));
  CHECK(graph.constants[0].offset == 0);
  CHECK(graph.constants[1].offset == 32);
  CHECK(graph.constants[2].offset == 32);
  const std::vector<std::byte> bytes = bytes_of(ByteRange::whole(inlined));
  REQUIRE(bytes.size() == 48);
  CHECK(bytes[19] == std::byte{1});
  CHECK(bytes[20] == std::byte{0});
  CHECK(bytes[32] == std::byte{2});
}

TEST_CASE("writer: a graph that a reader would refuse is not written") {
  Graph graph = full_graph();
  graph.outputs = {77};
  const Result<ByteSourcePtr> blob = assemble_delegate(graph, filled(16, 2));
  REQUIRE_FALSE(blob.ok());
  CHECK(blob.error().code() == ErrorCode::invalid_program);
  CHECK(blob.error().context().back() == "while checking the delegate to write");
  // An inline constant without the bytes for it.
  CHECK_FALSE(assemble_delegate(full_graph(), {}).ok());
}

// One addition of a constant: testdata/pte/example.pte, which docs/formats.md walks through.
Program example_program() {
  const float weight[2] = {1, 2};
  const auto weight_bytes = std::as_bytes(std::span(weight));
  const ByteRange data = ByteRange::whole(own_bytes({weight_bytes.begin(), weight_bytes.end()}));
  Graph graph;
  graph.version = "0";
  graph.values = {GraphTensor{.dims = {2}, .mem_obj_id = 0},
                  GraphTensor{.dims = {2}, .constant_id = 0}, GraphTensor{.dims = {2}}, int64_t{1}};
  graph.chain = {{0, "aten.add.Tensor", {0, 1, 3, 2}}};
  graph.inputs = {0};
  graph.outputs = {2};
  graph.constants = {{"w", kNamedDataOffset, data}};

  Program program;
  program.segments = {ByteRange(), ByteRange::whole(take(assemble_delegate(graph))), data};
  program.constant_segment = SubsegmentOffsets{0, {0}};
  program.named_data = {{"w", 2}};
  ExecutionPlan plan;
  plan.name = "f";
  const Tensor tensor{.sizes = {2}, .dim_order = {0}};
  plan.values = {tensor, tensor};
  plan.inputs = {0};
  plan.outputs = {1};
  plan.delegates = {{.id = std::string(kVulkanBackendId), .index = 1}};
  Chain chain;
  chain.instructions = {DelegateCall{0, {0, 1}}};
  plan.chains = {chain};
  plan.non_const_buffer_sizes = {0};
  program.plans = {plan};
  return program;
}

TEST_CASE("writer: the example of docs/formats.md is what we write, byte for byte") {
  const ByteSourcePtr committed = take(map_file(PTERO_TESTDATA "/pte/example.pte"));
  CHECK(bytes_of(ByteRange::whole(take(assemble_program(example_program())))) ==
        bytes_of(ByteRange::whole(committed)));
}

TEST_CASE("writer: tensors of their own file") {
  FlatTensor file;
  file.segments = {filled(24, 1), filled(3, 2)};
  file.entries = {
      {"weight", 0, TensorLayout{.sizes = {2, 3}, .dim_order = {0, 1}}},
      {"bytes", 1, std::nullopt},
      {"alias", 1, TensorLayout{.scalar_type = ScalarType::int8, .sizes = {3}, .dim_order = {0}}}};
  const ByteSourcePtr written = take(assemble_flat_tensor(file));
  const std::vector<std::byte> bytes = bytes_of(ByteRange::whole(written));
  CHECK(text_at(bytes, 4, 8) == "FT01FH01");
  CHECK(number_at(bytes, 12, 4) == 40);
  CHECK(number_at(bytes, 16, 8) == 48);
  const uint64_t base = number_at(bytes, 32, 8);
  CHECK(base % 128 == 0);
  CHECK(number_at(bytes, 40, 8) == 128 + 3);
  CHECK(bytes.size() == base + 128 + 3);
  const FlatTensor again = take(read_flat_tensor(ByteRange::whole(written)));
  CHECK(again.entries == file.entries);
  CHECK(bytes_of(again.segments[0]) == bytes_of(file.segments[0]));
  CHECK(bytes_of(again.segments[1]) == bytes_of(file.segments[1]));

  file.entries[2].layout->sizes = {4};
  CHECK(assemble_flat_tensor(file).error().context().back() ==
        "while checking the tensors to write");
}

}  // namespace
}  // namespace ptero::pte
