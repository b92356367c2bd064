// SPDX-License-Identifier: BSD-3-Clause
#include "pte/corrupt_base.h"

#include <numeric>

#include <doctest/doctest.h>

#include "pte/data_map.h"
#include "pte/delegate_reader.h"
#include "pte/graph_reader.h"
#include "pte/program_reader.h"

namespace ptero::pte::test {
namespace {

namespace fb = fbs::program;
namespace fg = fbs::vkgraph;

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// ---- the program ----

struct SegmentPlan {
  uint64_t offset;
  uint64_t size;
};

class ProgramMaker {
 public:
  ProgramMaker(const ModelOptions& options, const std::vector<SegmentPlan>& segments,
               const std::vector<std::byte>& blob)
      : options_(options), segments_(segments), blob_(blob) {
    prepare(builder_);
  }

  std::vector<std::byte> make() {
    std::vector<Offset<fb::ExecutionPlan>> plans = {main_plan()};
    for (size_t i = 1; i < options_.plans; ++i) {
      plans.push_back(int_plan(options_.plans == 2 ? "get_len" : "m" + std::to_string(i)));
    }
    std::vector<Offset<fb::Buffer>> buffers;
    std::vector<Offset<fb::BackendDelegateInlineData>> inlined;
    if (options_.inline_data || options_.both_constants) {
      const std::vector<uint8_t> weights(16);
      buffers = {fb::CreateBuffer(builder_, aligned({})),
                 fb::CreateBuffer(builder_, aligned(weights))};
    }
    if (options_.inline_data) {
      const auto* data = reinterpret_cast<const uint8_t*>(blob_.data());
      inlined = {
          fb::CreateBackendDelegateInlineData(builder_, aligned({data, data + blob_.size()}))};
    }
    std::vector<Offset<fb::DataSegment>> segments;
    for (const SegmentPlan& segment : segments_) {
      segments.push_back(fb::CreateDataSegment(builder_, segment.offset, segment.size));
    }
    Offset<fb::SubsegmentOffsets> constants;
    std::vector<Offset<fb::SubsegmentOffsets>> mutables;
    std::vector<Offset<fb::NamedData>> named;
    if (!options_.inline_data) {
      const std::vector<uint64_t> offsets = {0, 16};
      constants = fb::CreateSubsegmentOffsets(builder_, 0, builder_.CreateVector(offsets));
      const std::vector<uint64_t> starts = {0, 0};
      mutables = {fb::CreateSubsegmentOffsets(builder_, 2, builder_.CreateVector(starts)),
                  fb::CreateSubsegmentOffsets(builder_, 5, builder_.CreateVector(starts))};
      named = {fb::CreateNamedData(builder_, builder_.CreateString("weight"), 3),
               fb::CreateNamedData(builder_, builder_.CreateString("table."), 4)};
    }
    const auto program =
        fb::CreateProgram(builder_, 0, builder_.CreateVector(plans), builder_.CreateVector(buffers),
                          builder_.CreateVector(inlined), builder_.CreateVector(segments),
                          constants, builder_.CreateVector(mutables), builder_.CreateVector(named));
    fb::FinishProgramBuffer(builder_, program);
    return bytes_of(builder_);
  }

 private:
  Offset<flatbuffers::Vector<uint8_t>> aligned(const std::vector<uint8_t>& bytes) {
    builder_.ForceVectorAlignment(bytes.size(), 1, 16);
    return builder_.CreateVector(bytes);
  }

  Offset<flatbuffers::Vector<int32_t>> ids(const std::vector<int32_t>& list) {
    return builder_.CreateVector(list);
  }

  template <typename T>
  void value(fb::KernelTypes type, Offset<T> content) {
    values_.push_back(fb::CreateEValue(builder_, type, content.Union()));
  }

  void tensor(const std::vector<int32_t>& sizes, uint32_t data_buffer = 0,
              Offset<fb::AllocationDetails> allocation = 0, Offset<fb::ExtraTensorInfo> extra = 0,
              fbs::ScalarType type = fbs::ScalarType::FLOAT) {
    std::vector<uint8_t> order(sizes.size());
    std::iota(order.begin(), order.end(), uint8_t{0});
    value(fb::KernelTypes::Tensor,
          fb::CreateTensor(builder_, type, 0, builder_.CreateVector(sizes),
                           builder_.CreateVector(order), false, data_buffer, allocation, 0,
                           fb::TensorShapeDynamism::STATIC, extra));
  }

  Offset<fb::AllocationDetails> planned(uint32_t offset) {
    return fb::CreateAllocationDetails(builder_, 1, offset, 0);
  }

  void add_values() {
    std::vector<int32_t> sizes = {2, 8};
    sizes.resize(options_.rank, 1);
    tensor(sizes);
    tensor({2, 8}, 0, planned(0));
    tensor({4}, 1);
    if (options_.inline_data) {
      tensor({4}, 0, planned(64));
    } else {
      tensor({4}, 1, planned(64),
             fb::CreateExtraTensorInfo(builder_, 0, builder_.CreateString("buffer")));
    }
    tensor({4}, 0, 0,
           fb::CreateExtraTensorInfo(builder_, 0, builder_.CreateString("external.weight"),
                                     fb::TensorDataLocation::EXTERNAL));
    value(fb::KernelTypes::Int, fb::CreateInt(builder_, 7));
    value(fb::KernelTypes::Bool, fb::CreateBool(builder_, true));
    value(fb::KernelTypes::Double, fb::CreateDouble(builder_, 0.5));
    value(fb::KernelTypes::String, fb::CreateString(builder_, builder_.CreateString("text")));
    const std::vector<int64_t> int_ids = {kInt, kInt};
    value(fb::KernelTypes::IntList, fb::CreateIntList(builder_, builder_.CreateVector(int_ids)));
    const std::vector<double> doubles = {0.5};
    value(fb::KernelTypes::DoubleList,
          fb::CreateDoubleList(builder_, builder_.CreateVector(doubles)));
    const std::vector<uint8_t> bools = {1, 0};
    value(fb::KernelTypes::BoolList, fb::CreateBoolList(builder_, builder_.CreateVector(bools)));
    value(fb::KernelTypes::TensorList, fb::CreateTensorList(builder_, ids({kInput, kPlanned})));
    value(fb::KernelTypes::OptionalTensorList,
          fb::CreateOptionalTensorList(builder_, ids({kInput, -1, kNull})));
    value(fb::KernelTypes::Null, fb::CreateNull(builder_));
    tensor({1}, 0, planned(80), 0, fbs::ScalarType::BOOL);
  }

  template <typename T>
  void instruction(fb::InstructionArguments type, Offset<T> content) {
    instructions_.push_back(fb::CreateInstruction(builder_, type, content.Union()));
  }

  void add_instructions() {
    using I = fb::InstructionArguments;
    instruction(I::KernelCall,
                fb::CreateKernelCall(builder_, 0, ids({kInput, kConstant, kInt, kPlanned})));
    instruction(I::DelegateCall, fb::CreateDelegateCall(builder_, 0, ids({kInput, kPlanned})));
    instruction(I::MoveCall, fb::CreateMoveCall(builder_, kInput, kPlanned));
    instruction(I::JumpFalseCall, fb::CreateJumpFalseCall(builder_, kBool, kLoopBody));
    instruction(I::FreeCall, fb::CreateFreeCall(builder_, kPlanned));
    instruction(I::KernelCall, fb::CreateKernelCall(builder_, 0, ids({kInput, kCondition})));
    instruction(I::JumpFalseCall, fb::CreateJumpFalseCall(builder_, kCondition, kLoopBody));
    if (options_.shared_calls == 0) {
      return;
    }
    const auto args = ids(std::vector<int32_t>(options_.shared_call_args, kInput));
    instruction(I::KernelCall, fb::CreateKernelCall(builder_, 0, args));
    instructions_.resize(instructions_.size() + options_.shared_calls - 1, instructions_.back());
  }

  Offset<fb::BackendDelegate> delegate() {
    const std::vector<uint8_t> setting = {1};
    const std::vector<Offset<fb::CompileSpec>> specs = {fb::CreateCompileSpec(
        builder_, builder_.CreateString("force_fp16"), builder_.CreateVector(setting))};
    const auto where = fb::CreateBackendDelegateDataReference(
        builder_, options_.inline_data ? fb::DataLocation::INLINE : fb::DataLocation::SEGMENT,
        options_.inline_data ? 0 : 1);
    return fb::CreateBackendDelegate(builder_, builder_.CreateString("VulkanBackend"), where,
                                     builder_.CreateVector(specs));
  }

  Offset<fb::ExecutionPlan> main_plan() {
    add_values();
    add_instructions();
    std::vector<Offset<fb::FrameList>> trace;
    for (size_t i = 0; i < instructions_.size() && options_.shared_calls == 0; ++i) {
      const std::vector<Offset<fb::Frame>> frames = {
          fb::CreateFrame(builder_, builder_.CreateString("model.py"), 12)};
      trace.push_back(fb::CreateFrameList(builder_, builder_.CreateVector(frames)));
    }
    const std::vector<Offset<fb::Chain>> chains = {
        fb::CreateChain(builder_, ids({kInput}), ids({kPlanned}),
                        builder_.CreateVector(instructions_), builder_.CreateVector(trace))};
    const std::vector<Offset<fb::Operator>> operators = {fb::CreateOperator(
        builder_, builder_.CreateString("aten::add"), builder_.CreateString("out"))};
    const std::vector<Offset<fb::BackendDelegate>> delegates = {delegate()};
    const std::vector<int64_t> arenas = {0, 96};
    const std::vector<Offset<fb::NonConstBufferDevice>> devices = {
        fb::CreateNonConstBufferDevice(builder_, 1, fb::DeviceType::CPU, 0)};
    const std::string name =
        options_.method_name_size == 0 ? "forward" : std::string(options_.method_name_size, 'f');
    return fb::CreateExecutionPlan(
        builder_, builder_.CreateString(name),
        fb::CreateContainerMetadata(builder_, builder_.CreateString("[]"),
                                    builder_.CreateString("[]")),
        builder_.CreateVector(values_), ids({kInput}), ids({kPlanned}),
        builder_.CreateVector(chains), builder_.CreateVector(operators),
        builder_.CreateVector(delegates), builder_.CreateVector(arenas),
        builder_.CreateVector(devices));
  }

  Offset<fb::ExecutionPlan> int_plan(const std::string& name) {
    const std::vector<Offset<fb::EValue>> values = {
        fb::CreateEValue(builder_, fb::KernelTypes::Int, fb::CreateInt(builder_, 128).Union())};
    const std::vector<Offset<fb::Chain>> chains;
    const std::vector<int64_t> arenas = {0};
    return fb::CreateExecutionPlan(
        builder_, builder_.CreateString(name), 0, builder_.CreateVector(values), ids({}), ids({0}),
        builder_.CreateVector(chains), 0, 0, builder_.CreateVector(arenas));
  }

  const ModelOptions& options_;
  const std::vector<SegmentPlan>& segments_;
  const std::vector<std::byte>& blob_;
  FlatBufferBuilder builder_;
  std::vector<Offset<fb::EValue>> values_;
  std::vector<Offset<fb::Instruction>> instructions_;
};

}  // namespace

ModelFile::ModelFile(const ModelOptions& options) {
  const std::vector<std::byte> blob = delegate_blob();
  if (options.inline_data) {
    bytes = ProgramMaker(options, {}, blob).make();
    blob_ = static_cast<size_t>(reinterpret_cast<const std::byte*>(
                                    program()->backend_delegate_data()->Get(0)->data()->data()) -
                                bytes.data());
    return;
  }
  const size_t after_blob = kAlignment + aligned_up(blob.size());
  const std::vector<SegmentPlan> segments = {
      {0, 32},                            // constants
      {kAlignment, blob.size()},          // delegate
      {after_blob, 16},                   // initial bytes of a mutable tensor
      {after_blob + kAlignment, 16},      // "weight"
      {after_blob + 2 * kAlignment, 64},  // "table."
      {after_blob + 3 * kAlignment, 16},  // of nothing
  };
  bytes = ProgramMaker(options, segments, blob).make();
  std::vector<std::byte> header;
  append_text(header, "eh00");
  append<uint32_t>(header, 32);
  const size_t program_size = bytes.size() + 32;
  const size_t base = aligned_up(program_size);
  const size_t data_size = segments.back().offset + segments.back().size;
  append<uint64_t>(header, program_size);
  append<uint64_t>(header, base);
  append<uint64_t>(header, data_size);
  insert_header(bytes, header);
  bytes.resize(base + data_size);
  blob_ = base + kAlignment;
  std::copy(blob.begin(), blob.end(), bytes.begin() + static_cast<std::ptrdiff_t>(blob_));
}

const fb::Program* ModelFile::program() const {
  return fb::GetProgram(bytes.data());
}

const fb::EValue* ModelFile::value(size_t id) const {
  return plan()->values()->Get(static_cast<uint32_t>(id));
}

const fb::Instruction* ModelFile::instruction(size_t index) const {
  return chain()->instructions()->Get(static_cast<uint32_t>(index));
}

const fb::BackendDelegate* ModelFile::delegate(size_t index) const {
  return plan()->delegates()->Get(static_cast<uint32_t>(index));
}

const fg::VkGraph* ModelFile::graph() const {
  return fg::GetVkGraph(bytes.data() + blob_ + kVhHeaderSize);
}

const fg::VkValue* ModelFile::graph_value(size_t id) const {
  return graph()->values()->Get(static_cast<uint32_t>(id));
}

const fg::VkTensor* ModelFile::graph_tensor(size_t id) const {
  return graph_value(id)->value_as_VkTensor();
}

const fg::OperatorCall* ModelFile::graph_call(size_t index) const {
  return graph()->chain()->Get(static_cast<uint32_t>(index));
}

Status read_all(const ByteRange& file) {
  PTERO_ASSIGN_OR_RETURN(const Program program, read_program(file));
  DataMap data;
  PTERO_RETURN_IF_ERROR(data.add(program));
  for (const BackendDelegate& entry : program.plans.front().delegates) {
    PTERO_ASSIGN_OR_RETURN(const Delegate delegate, read_delegate(delegate_bytes(program, entry)));
    PTERO_RETURN_IF_ERROR(read_graph(delegate, data));
  }
  return ok_status();
}

}  // namespace ptero::pte::test
