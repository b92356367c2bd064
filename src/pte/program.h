// SPDX-License-Identifier: BSD-3-Clause
// What a .pte file says, as plain values: program_reader.h makes one from bytes, program_writer.h
// makes bytes from one. Nothing here knows FlatBuffers.
//
// Ids are indices: a "value id" counts in ExecutionPlan::values of the same plan. Lines marked
// [checked] are true of every Program that a reader returns, so that later layers need not look
// again; a Program made by hand must keep them, and the writer refuses one that does not.
//
// The file tells an absent vector from an empty one, these structs do not. An empty `named_data`,
// `mutable_data_segments`, `stacktrace` or `non_const_buffer_devices` is written as absent, any
// other empty vector as empty: that is what ExecuTorch's exporter does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/byte_source.h"
#include "pte/values.h"

namespace ptero::pte {

// ---- values ----

enum class ShapeDynamism : int8_t {
  fixed = 0,    // `sizes` is the shape
  bounded = 1,  // each dimension of a live shape is at most the one in `sizes`
  unbounded = 2,
};

enum class DeviceType : int8_t { cpu = 0, cuda = 1 };

// Where a planned tensor lives.
struct Allocation {
  uint32_t memory_id = 0;  // [checked] < non_const_buffer_sizes.size()
  uint64_t offset = 0;     // bytes; [checked] offset + tensor bytes <= size of that arena

  bool operator==(const Allocation&) const = default;
};

struct ExtraTensorInfo {
  uint64_t mutable_data_segment = 0;  // index into Program::mutable_data_segments
  std::optional<std::string> fully_qualified_name;
  bool external = false;  // bytes are in a DataMap; [checked] then the name is not empty
  DeviceType device_type = DeviceType::cpu;
  int8_t device_index = 0;

  bool operator==(const ExtraTensorInfo&) const = default;
};

// What the two optional fields say together:
//   data_buffer  allocation
//        0         none      memory comes from the caller (an input), or from a delegate
//        0         set       a planned activation
//       > 0        none      a constant: see constant_bytes()
//       > 0        set       planned, starts with bytes of a mutable data segment
struct Tensor {
  ScalarType scalar_type = ScalarType::float32;
  std::vector<int32_t> sizes;      // [checked] none negative; rank at most kMaxRank
  std::vector<uint8_t> dim_order;  // outermost to innermost; [checked] a permutation of the rank
  uint32_t data_buffer = 0;
  std::optional<Allocation> allocation;
  ShapeDynamism dynamism = ShapeDynamism::fixed;
  std::optional<ExtraTensorInfo> extra;
  int32_t storage_offset = 0;  // [checked] 0: nothing else was ever defined
  bool requires_grad = false;
  int8_t layout = 0;

  bool operator==(const Tensor&) const = default;
};

// The file stores the ids of Int values here, not the numbers.
struct IntIdList {
  std::vector<uint32_t> ids;  // [checked] each names an Int
  bool operator==(const IntIdList&) const = default;
};
struct TensorIdList {
  std::vector<uint32_t> ids;  // [checked] each names a Tensor
  bool operator==(const TensorIdList&) const = default;
};
struct OptionalTensorIdList {
  std::vector<std::optional<uint32_t>> ids;  // [checked] each names a Tensor or a Null; none is -1
  bool operator==(const OptionalTensorIdList&) const = default;
};

// In the order of the file's union, whose tag is index() + 1.
using Value = std::variant<Null, int64_t, bool, double, Tensor, std::string, IntIdList, DoubleList,
                           BoolList, TensorIdList, OptionalTensorIdList>;

// ---- instructions ----

struct KernelCall {
  uint32_t op = 0;             // [checked] index into ExecutionPlan::operators
  std::vector<uint32_t> args;  // [checked] value ids; outputs come last
  bool operator==(const KernelCall&) const = default;
};
struct DelegateCall {
  uint32_t delegate = 0;       // [checked] index into ExecutionPlan::delegates
  std::vector<uint32_t> args;  // [checked] value ids: the delegate's inputs, then its outputs
  bool operator==(const DelegateCall&) const = default;
};
struct MoveCall {
  uint32_t from = 0;  // [checked] value ids
  uint32_t to = 0;
  bool operator==(const MoveCall&) const = default;
};
// Jumps when its condition is false. A jump back is a loop that ends once the condition is true.
// [checked] Something between destination and jump may change the condition: it is an argument of
// a KernelCall or DelegateCall or the target of a MoveCall there; a jump to itself has no such
// thing. That rules out loops that cannot end, not those that do not: who executes a program with
// a jump back still has to count steps.
struct JumpFalseCall {
  uint32_t condition = 0;    // [checked] id of a Bool or a Tensor
  uint32_t destination = 0;  // [checked] index in the chain; its length ends the chain
  bool operator==(const JumpFalseCall&) const = default;
};
struct FreeCall {
  uint32_t value = 0;  // [checked] id of a Tensor
  bool operator==(const FreeCall&) const = default;
};

// In the order of the file's union, whose tag is index() + 1.
using Instruction = std::variant<KernelCall, DelegateCall, MoveCall, JumpFalseCall, FreeCall>;

struct Frame {
  std::string filename;
  int32_t line = 0;
  std::string name;
  std::string context;
  bool operator==(const Frame&) const = default;
};
using FrameList = std::vector<Frame>;

struct Chain {
  std::vector<uint32_t> inputs;  // [checked] value ids; empty in files of today
  std::vector<uint32_t> outputs;
  std::vector<Instruction> instructions;
  std::vector<FrameList> stacktrace;  // [checked] empty or one per instruction
  bool operator==(const Chain&) const = default;
};

// ---- methods ----

struct Operator {
  std::string name;      // "aten::add"
  std::string overload;  // "out", or empty
  bool operator==(const Operator&) const = default;
};

struct CompileSpec {
  std::string key;
  std::vector<std::byte> value;
  bool operator==(const CompileSpec&) const = default;
};

enum class DataLocation : int8_t {
  inlined = 0,  // index into Program::inline_delegate_data
  segment = 1,  // index into Program::segments
};

struct BackendDelegate {
  std::string id;  // [checked] not empty; "VulkanBackend" for what Ptero runs
  DataLocation location = DataLocation::segment;
  uint32_t index = 0;  // [checked] in the list that `location` names; see delegate_bytes()
  std::vector<CompileSpec> compile_specs;
  bool operator==(const BackendDelegate&) const = default;
};

// PyTree descriptions of the arguments and results, as JSON text.
struct ContainerMetadata {
  std::string inputs;
  std::string outputs;
  bool operator==(const ContainerMetadata&) const = default;
};

struct BufferDevice {
  uint32_t buffer = 0;  // [checked] index into non_const_buffer_sizes
  DeviceType device_type = DeviceType::cpu;
  int8_t device_index = 0;
  bool operator==(const BufferDevice&) const = default;
};

struct ExecutionPlan {
  std::string name;  // [checked] not empty, unique in the program
  std::optional<ContainerMetadata> container;
  std::vector<Value> values;
  std::vector<uint32_t> inputs;  // [checked] value ids
  std::vector<uint32_t> outputs;
  std::vector<Chain> chains;
  std::vector<Operator> operators;
  std::vector<BackendDelegate> delegates;
  std::vector<uint64_t> non_const_buffer_sizes;  // bytes of each arena; arena 0 is not used
  std::vector<BufferDevice> non_const_buffer_devices;
};

// ---- the program ----

// Offsets in one segment. Entry 0 of the constant segment is a placeholder that no tensor uses.
struct SubsegmentOffsets {
  uint32_t segment = 0;           // [checked] index into Program::segments, unless offsets is empty
  std::vector<uint64_t> offsets;  // [checked] each at most the segment's size
  bool operator==(const SubsegmentOffsets&) const = default;
};

struct NamedData {
  std::string key;       // [checked] not empty, unique
  uint32_t segment = 0;  // [checked] index into Program::segments
  bool operator==(const NamedData&) const = default;
};

// The container as the reader found it, for people; the writer makes its own.
struct ContainerLayout {
  bool extended_header = false;      // without one there are no segments
  uint64_t flatbuffer_size = 0;      // bytes, from the start of the file
  uint64_t segment_base_offset = 0;  // 0: no segments
  uint64_t segment_data_size = 0;    // 0: the header does not say
};

struct Program {
  uint32_t version = 0;
  std::vector<ExecutionPlan> plans;             // [checked] not empty
  std::vector<ByteRange> constant_buffer;       // constants inside the flatbuffer (old files)
  std::vector<ByteRange> inline_delegate_data;  // delegates inside the flatbuffer
  std::vector<ByteRange> segments;              // wherever the bytes come from: this file or memory
  std::optional<SubsegmentOffsets> constant_segment;
  std::vector<SubsegmentOffsets> mutable_data_segments;
  std::vector<NamedData> named_data;
  ContainerLayout layout;
};

// Null if there is no method of that name.
const ExecutionPlan* find_plan(const Program& program, std::string_view name);

// The bytes that `delegate` hands to its backend. `delegate` is one of `program`.
ByteRange delegate_bytes(const Program& program, const BackendDelegate& delegate);

// Bytes of a dense tensor of the given type and sizes (the largest shape for bounded ones).
// Code invalid_program when a size is negative, the type has no element size or the product does
// not fit in 64 bits.
Result<uint64_t> tensor_bytes(ScalarType type, const std::vector<int32_t>& sizes);

// The initial bytes of a tensor with data_buffer > 0 that is not external; as long as the tensor.
// Code invalid_program when they are not there: only for a Program that no reader checked.
Result<ByteRange> constant_bytes(const Program& program, const Tensor& tensor);

}  // namespace ptero::pte
