// SPDX-License-Identifier: BSD-3-Clause
// The delegate, .ptd and .bpte of the corruption tests' base files.
#include <flatbuffers/flatbuffers.h>

#include "pte/corrupt_base.h"

namespace ptero::pte::test {
namespace {

namespace fg = fbs::vkgraph;

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// ---- the graph ----

class GraphMaker {
 public:
  GraphMaker() { prepare(builder_); }

  std::vector<std::byte> make() {
    add_values();
    std::vector<Offset<fg::VkBytes>> constants = {bytes(UINT64_MAX, 16, "weight"), bytes(0, 32, ""),
                                                  bytes(UINT64_MAX, 64, "table."),
                                                  bytes(32, 128, ""), bytes(160, 16, "")};
    const std::vector<Offset<fg::OperatorCall>> calls = {
        call("et_vk.linear_q4gsw.default", {kX, kWeight, kScales, kGroupSize, kBias, kY}),
        call("et_vk.embedding_q4gsw.default",
             {kTable, kTableScales, kGroupSize, kIndices, kGraphBool, kRows}),
        call("et_vk.linear_qcs4w.default", {kX, kWeight, kBias, kY}),
        call("mine.unknown.default", {kY, kList, kY}),
    };
    const std::vector<uint32_t> inputs = {kX, kIndices, kSym};
    const std::vector<uint32_t> outputs = {kY, kRows};
    const auto graph =
        fg::CreateVkGraph(builder_, builder_.CreateString("0"), builder_.CreateVector(calls),
                          builder_.CreateVector(values_), builder_.CreateVector(inputs),
                          builder_.CreateVector(outputs), builder_.CreateVector(constants),
                          builder_.CreateVector(std::vector<Offset<fg::VkBytes>>()));
    fg::FinishVkGraphBuffer(builder_, graph);
    return bytes_of(builder_);
  }

 private:
  void add_values() {
    using D = fg::VkDataType;
    tensor(D::FLOAT32, {2, 8});
    tensor(D::UINT8, {4, 4}, 0);
    tensor(D::FLOAT32, {2, 4}, 1);
    value(fg::GraphTypes::Int, fg::CreateInt(builder_, 4));
    value(fg::GraphTypes::Null, fg::CreateNull(builder_));
    tensor(D::FLOAT32, {2, 4}, -1, 0);
    const std::vector<int32_t> items = {kSym, kGroupSize};
    value(fg::GraphTypes::ValueList, fg::CreateValueList(builder_, builder_.CreateVector(items)));
    value(fg::GraphTypes::SymInt, fg::CreateSymInt(builder_, 0));
    const std::vector<int64_t> ints = {1, -2};
    value(fg::GraphTypes::IntList, fg::CreateIntList(builder_, builder_.CreateVector(ints)));
    const std::vector<double> doubles = {0.5};
    value(fg::GraphTypes::DoubleList,
          fg::CreateDoubleList(builder_, builder_.CreateVector(doubles)));
    const std::vector<uint8_t> bools = {1, 0};
    value(fg::GraphTypes::BoolList, fg::CreateBoolList(builder_, builder_.CreateVector(bools)));
    value(fg::GraphTypes::String, fg::CreateString(builder_, builder_.CreateString("tanh")));
    value(fg::GraphTypes::Double, fg::CreateDouble(builder_, 4.0));
    value(fg::GraphTypes::Bool, fg::CreateBool(builder_, true));
    tensor(D::UINT8, {16, 4}, 2);
    tensor(D::FLOAT32, {16, 2}, 3);
    tensor(D::INT32, {3});
    tensor(D::FLOAT32, {3, 8}, -1, 1);
    tensor(D::FLOAT32, {4}, 4);
  }

  template <typename T>
  void value(fg::GraphTypes type, Offset<T> content) {
    values_.push_back(fg::CreateVkValue(builder_, type, content.Union()));
  }

  void tensor(fg::VkDataType type, const std::vector<uint32_t>& dims, int32_t constant = -1,
              int32_t mem_obj = -1) {
    value(fg::GraphTypes::VkTensor,
          fg::CreateVkTensor(builder_, type, builder_.CreateVector(dims), constant, mem_obj));
  }

  Offset<fg::VkBytes> bytes(uint64_t offset, uint64_t length, const char* key) {
    return fg::CreateVkBytes(builder_, offset, length, builder_.CreateString(key));
  }

  Offset<fg::OperatorCall> call(const char* name, const std::vector<size_t>& args) {
    const std::vector<int32_t> ids(args.begin(), args.end());
    return fg::CreateOperatorCall(builder_, 1, builder_.CreateString(name),
                                  builder_.CreateVector(ids));
  }

  FlatBufferBuilder builder_;
  std::vector<Offset<fg::VkValue>> values_;
};

constexpr size_t kInlineConstants = 176;

}  // namespace

std::vector<std::byte> delegate_blob() {
  const std::vector<std::byte> graph = GraphMaker().make();
  std::vector<std::byte> blob(4);
  append_text(blob, "VH00");
  append<uint16_t>(blob, 30);
  append<uint32_t>(blob, kVhHeaderSize);
  append(blob, static_cast<uint32_t>(graph.size()));
  append(blob, static_cast<uint32_t>(kVhHeaderSize + graph.size()));
  append<uint64_t>(blob, kInlineConstants);
  blob.resize(kVhHeaderSize);
  blob.insert(blob.end(), graph.begin(), graph.end());
  blob.resize(blob.size() + kInlineConstants);
  return blob;
}

std::vector<std::byte> flat_tensor_file() {
  namespace ft = fbs::flat_tensor;
  FlatBufferBuilder builder;
  prepare(builder);
  const std::vector<int32_t> sizes = {4};
  const std::vector<uint8_t> order = {0};
  const std::vector<Offset<ft::DataSegment>> segments = {ft::CreateDataSegment(builder, 0, 16),
                                                         ft::CreateDataSegment(builder, 128, 8)};
  const std::vector<Offset<ft::NamedData>> named = {
      ft::CreateNamedData(
          builder, builder.CreateString("x"), 0,
          ft::CreateTensorLayout(builder, fbs::ScalarType::FLOAT, builder.CreateVector(sizes),
                                 builder.CreateVector(order))),
      ft::CreateNamedData(builder, builder.CreateString("y"), 1)};
  ft::FinishFlatTensorBuffer(builder,
                             ft::CreateFlatTensor(builder, 0, builder.CreateVector(segments),
                                                  builder.CreateVector(named)));
  std::vector<std::byte> bytes = bytes_of(builder);
  std::vector<std::byte> header;
  append_text(header, "FH01");
  append<uint32_t>(header, 40);
  append<uint64_t>(header, 48);  // what the header adds, with its padding
  append<uint64_t>(header, bytes.size());
  const size_t base = aligned_up(bytes.size() + 48);
  append<uint64_t>(header, base);
  append<uint64_t>(header, 136);
  header.resize(48);
  insert_header(bytes, header);
  bytes.resize(base + 136);
  return bytes;
}

std::vector<std::byte> bundled_file() {
  namespace bp = fbs::bundled_program;
  FlatBufferBuilder builder;
  prepare(builder);
  const std::vector<int32_t> sizes = {4};
  const std::vector<uint8_t> order = {0};
  const std::vector<uint8_t> data(16);
  builder.ForceVectorAlignment(data.size(), 1, 16);
  const auto stored = builder.CreateVector(data);
  const auto tensor = bp::CreateTensor(builder, fbs::ScalarType::FLOAT, builder.CreateVector(sizes),
                                       stored, builder.CreateVector(order));
  const std::vector<Offset<bp::Value>> inputs = {
      bp::CreateValue(builder, bp::ValueUnion::Tensor, tensor.Union()),
      bp::CreateValue(builder, bp::ValueUnion::Int, bp::CreateInt(builder, 3).Union()),
      bp::CreateValue(builder, bp::ValueUnion::Bool, bp::CreateBool(builder, true).Union()),
      bp::CreateValue(builder, bp::ValueUnion::Double, bp::CreateDouble(builder, 2).Union())};
  const std::vector<Offset<bp::BundledMethodTestCase>> cases = {bp::CreateBundledMethodTestCase(
      builder, builder.CreateVector(inputs),
      builder.CreateVector(std::vector<Offset<bp::Value>>{inputs[1]}))};
  const std::vector<Offset<bp::BundledMethodTestSuite>> suites = {bp::CreateBundledMethodTestSuite(
      builder, builder.CreateString("forward"), builder.CreateVector(cases))};
  const ModelFile model;
  const auto* program = reinterpret_cast<const uint8_t*>(model.bytes.data());
  builder.ForceVectorAlignment(model.bytes.size(), 1, 32);
  const auto inner = builder.CreateVector(program, model.bytes.size());
  bp::FinishBundledProgramBuffer(
      builder, bp::CreateBundledProgram(builder, 0, builder.CreateVector(suites), inner));
  return bytes_of(builder);
}

}  // namespace ptero::pte::test
