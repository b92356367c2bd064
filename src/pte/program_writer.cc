// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program_writer.h"

#include <utility>
#include <variant>

#include "base/checked.h"
#include "pte/flatbuffer_output.h"
#include "pte/program_reader.h"
#include "schema/program_generated.h"

namespace ptero::pte {
namespace {

namespace fb = ptero::fbs::program;
using flatbuffers::Offset;

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const SegmentPlan& segments) : segments_(segments) {}

  Result<std::vector<std::byte>> build(const Program& program) {
    const auto plans = out_.tables_of(program.plans, [&](const auto& x) { return plan(x); });
    const auto buffers = out_.tables_of(program.constant_buffer, [&](const ByteRange& x) {
      return fb::CreateBuffer(fbb_, out_.bytes(x));
    });
    const auto delegates = out_.tables_of(program.inline_delegate_data, [&](const ByteRange& x) {
      return fb::CreateBackendDelegateInlineData(fbb_, out_.bytes(x));
    });
    const auto segments = out_.tables_of(segments_.places, [&](const SegmentPlace& x) {
      return fb::CreateDataSegment(fbb_, x.offset, x.size);
    });
    Offset<fb::SubsegmentOffsets> constants;
    if (program.constant_segment) {
      constants = subsegments(*program.constant_segment);
    }
    const auto mutable_data = out_.tables_unless_empty(
        program.mutable_data_segments, [&](const auto& x) { return subsegments(x); });
    const auto named = out_.tables_unless_empty(program.named_data, [&](const NamedData& x) {
      return fb::CreateNamedData(fbb_, out_.string(x.key), x.segment);
    });
    return out_.finish(fb::CreateProgram(fbb_, program.version, plans, buffers, delegates, segments,
                                         constants, mutable_data, named),
                       fb::ProgramIdentifier());
  }

 private:
  using Ids = std::vector<uint32_t>;

  FlatbufferOutput::Vector<int32_t> ids(const Ids& items) { return out_.numbers<int32_t>(items); }

  Offset<fb::SubsegmentOffsets> subsegments(const SubsegmentOffsets& x) {
    return fb::CreateSubsegmentOffsets(fbb_, x.segment, out_.numbers<uint64_t>(x.offsets));
  }

  Offset<fb::ExecutionPlan> plan(const ExecutionPlan& x) {
    const auto name = out_.string(x.name);
    Offset<fb::ContainerMetadata> container;
    if (x.container) {
      const auto inputs = out_.string(x.container->inputs);
      container = fb::CreateContainerMetadata(fbb_, inputs, out_.string(x.container->outputs));
    }
    const auto values = out_.tables_of(x.values, [&](const Value& v) { return value(v); });
    const auto inputs = ids(x.inputs);
    const auto outputs = ids(x.outputs);
    const auto chains = out_.tables_of(x.chains, [&](const Chain& c) { return chain(c); });
    const auto operators = out_.tables_of(x.operators, [&](const Operator& op) {
      const auto op_name = out_.string(op.name);
      return fb::CreateOperator(fbb_, op_name, out_.string(op.overload));
    });
    const auto delegates =
        out_.tables_of(x.delegates, [&](const BackendDelegate& d) { return delegate(d); });
    const auto sizes = out_.numbers<int64_t>(x.non_const_buffer_sizes);
    const auto devices =
        out_.tables_unless_empty(x.non_const_buffer_devices, [&](const BufferDevice& d) {
          return fb::CreateNonConstBufferDevice(fbb_, static_cast<int32_t>(d.buffer),
                                                static_cast<fb::DeviceType>(d.device_type),
                                                d.device_index);
        });
    return fb::CreateExecutionPlan(fbb_, name, container, values, inputs, outputs, chains,
                                   operators, delegates, sizes, devices);
  }

  // ---- values ----

  Offset<fb::EValue> value(const Value& value) {
    const auto tag = static_cast<fb::KernelTypes>(value.index() + 1);
    return fb::CreateEValue(fbb_, tag,
                            std::visit([&](const auto& x) { return payload(x); }, value));
  }

  Offset<void> payload(const Null&) { return fb::CreateNull(fbb_).Union(); }
  Offset<void> payload(int64_t x) { return fb::CreateInt(fbb_, x).Union(); }
  Offset<void> payload(bool x) { return fb::CreateBool(fbb_, x).Union(); }
  Offset<void> payload(double x) { return fb::CreateDouble(fbb_, x).Union(); }
  Offset<void> payload(const std::string& x) {
    return fb::CreateString(fbb_, out_.string(x)).Union();
  }
  Offset<void> payload(const IntIdList& x) {
    return fb::CreateIntList(fbb_, out_.numbers<int64_t>(x.ids)).Union();
  }
  Offset<void> payload(const DoubleList& x) {
    return fb::CreateDoubleList(fbb_, out_.numbers<double>(x.items)).Union();
  }
  Offset<void> payload(const BoolList& x) {
    return fb::CreateBoolList(fbb_, out_.numbers<uint8_t>(x.items)).Union();
  }
  Offset<void> payload(const TensorIdList& x) {
    return fb::CreateTensorList(fbb_, ids(x.ids)).Union();
  }
  Offset<void> payload(const OptionalTensorIdList& x) {
    std::vector<int32_t> items;
    for (const std::optional<uint32_t>& id : x.ids) {
      items.push_back(id ? static_cast<int32_t>(*id) : -1);
    }
    return fb::CreateOptionalTensorList(fbb_, out_.numbers<int32_t>(items)).Union();
  }
  Offset<void> payload(const Tensor& x) {
    const auto sizes = out_.numbers<int32_t>(x.sizes);
    const auto dim_order = out_.numbers<uint8_t>(x.dim_order);
    Offset<fb::AllocationDetails> allocation;
    if (x.allocation) {
      allocation = fb::CreateAllocationDetails(fbb_, x.allocation->memory_id,
                                               static_cast<uint32_t>(x.allocation->offset),
                                               static_cast<uint32_t>(x.allocation->offset >> 32));
    }
    Offset<fb::ExtraTensorInfo> extra;
    if (x.extra) {
      const auto location =
          x.extra->external ? fb::TensorDataLocation::EXTERNAL : fb::TensorDataLocation::SEGMENT;
      extra = fb::CreateExtraTensorInfo(
          fbb_, x.extra->mutable_data_segment, out_.optional_string(x.extra->fully_qualified_name),
          location, static_cast<fb::DeviceType>(x.extra->device_type), x.extra->device_index);
    }
    return fb::CreateTensor(fbb_, static_cast<fbs::ScalarType>(x.scalar_type), x.storage_offset,
                            sizes, dim_order, x.requires_grad, x.data_buffer, allocation, x.layout,
                            static_cast<fb::TensorShapeDynamism>(x.dynamism), extra)
        .Union();
  }

  // ---- instructions ----

  Offset<fb::Chain> chain(const Chain& x) {
    const auto inputs = ids(x.inputs);
    const auto outputs = ids(x.outputs);
    const auto instructions = out_.tables_of(x.instructions, [&](const Instruction& i) {
      const auto tag = static_cast<fb::InstructionArguments>(i.index() + 1);
      return fb::CreateInstruction(fbb_, tag,
                                   std::visit([&](const auto& call) { return args(call); }, i));
    });
    const auto stacktrace = out_.tables_unless_empty(x.stacktrace, [&](const FrameList& frames) {
      return fb::CreateFrameList(fbb_,
                                 out_.tables_of(frames, [&](const Frame& f) { return frame(f); }));
    });
    return fb::CreateChain(fbb_, inputs, outputs, instructions, stacktrace);
  }

  Offset<void> args(const KernelCall& x) {
    return fb::CreateKernelCall(fbb_, static_cast<int32_t>(x.op), ids(x.args)).Union();
  }
  Offset<void> args(const DelegateCall& x) {
    return fb::CreateDelegateCall(fbb_, static_cast<int32_t>(x.delegate), ids(x.args)).Union();
  }
  Offset<void> args(const MoveCall& x) {
    return fb::CreateMoveCall(fbb_, static_cast<int32_t>(x.from), static_cast<int32_t>(x.to))
        .Union();
  }
  Offset<void> args(const JumpFalseCall& x) {
    return fb::CreateJumpFalseCall(fbb_, static_cast<int32_t>(x.condition),
                                   static_cast<int32_t>(x.destination))
        .Union();
  }
  Offset<void> args(const FreeCall& x) {
    return fb::CreateFreeCall(fbb_, static_cast<int32_t>(x.value)).Union();
  }

  Offset<fb::Frame> frame(const Frame& x) {
    const auto filename = out_.string(x.filename);
    const auto name = out_.string(x.name);
    return fb::CreateFrame(fbb_, filename, x.line, name, out_.string(x.context));
  }

  Offset<fb::BackendDelegate> delegate(const BackendDelegate& x) {
    const auto id = out_.string(x.id);
    const auto processed = fb::CreateBackendDelegateDataReference(
        fbb_, static_cast<fb::DataLocation>(x.location), x.index);
    const auto specs = out_.tables_of(x.compile_specs, [&](const CompileSpec& spec) {
      const auto key = out_.string(spec.key);
      return fb::CreateCompileSpec(fbb_, key, out_.numbers<uint8_t>(spec.value));
    });
    return fb::CreateBackendDelegate(fbb_, id, processed, specs);
  }

  const SegmentPlan& segments_;
  FlatbufferOutput out_;
  flatbuffers::FlatBufferBuilder& fbb_ = out_.builder();
};

// The header's length field counts up to here; it ends at a multiple of 16, as insert_header wants.
constexpr uint32_t kExtendedHeaderSize = 32;

}  // namespace

Result<ByteSourcePtr> assemble_program(const Program& program, std::string name) {
  PTERO_ASSIGN_OR_RETURN(const SegmentPlan segments, plan_segments(program.segments));
  PTERO_ASSIGN_OR_RETURN(std::vector<std::byte> head, ProgramBuilder(segments).build(program));
  uint64_t segment_base = head.size();
  if (segments.data_size > 0) {
    const uint64_t program_size = head.size() + kExtendedHeaderSize;
    segment_base = *checked_round_up(program_size, kSegmentAlignment);
    std::vector<std::byte> header;
    append_text(header, "eh00");
    append_u32(header, kExtendedHeaderSize);
    append_u64(header, program_size);
    append_u64(header, segment_base);
    append_u64(header, segments.data_size);
    head = insert_header(head, header);
  }
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr file,
                         compose_container(std::move(head), segment_base, segments,
                                           program.segments, std::move(name)));
  // The reader knows every rule of program.h; nothing leaves here that it would refuse.
  PTERO_RETURN_IF_ERROR(read_program(ByteRange::whole(file)),
                        "while checking the program to write");
  return file;
}

}  // namespace ptero::pte
