// SPDX-License-Identifier: BSD-3-Clause
// What a VulkanBackend delegate says, as plain values: the VH00 header around the blob and the
// VK00 graph in it. delegate_reader.h and graph_reader.h make these from bytes; the writers turn
// them back. [checked] has the meaning that program.h gives it.
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

// The id under which the exporter files these blobs.
inline constexpr std::string_view kVulkanBackendId = "VulkanBackend";

// ---- the VH00 header ----

struct Delegate {
  uint16_t header_size = 0;  // bytes, as the header says; the writer makes its own
  ByteRange graph;           // the VK00 flatbuffer
  ByteRange constants;       // bytes of constants without a key; often empty
};

// ---- the VK00 graph ----

// How the native Vulkan runtime would place a tensor. Ptero keeps row-major buffers and only
// passes these on.
enum class StorageType : uint8_t { buffer = 0, texture_3d = 1, texture_2d = 2, unset = 255 };
enum class MemoryLayout : uint8_t {
  width_packed = 0,
  height_packed = 1,
  channels_packed = 2,
  int8_4w4c = 3,
  int8_4h4w = 4,
  int8_4w = 5,
  int8_4c = 6,
  int8_4c1w = 8,
  int8_conv2d = 9,
  unset = 255,
};

struct GraphTensor {
  GraphDtype dtype = GraphDtype::float32;  // [checked] not unset
  std::vector<uint32_t> dims;              // the largest shape; [checked] rank <= kMaxRank
  // Index into Graph::constants. [checked] The constant has as many bytes as the tensor.
  // A tensor with both ids (a KV cache) starts from the constant in memory of its own.
  std::optional<uint32_t> constant_id;
  // Tensors with equal ids share one allocation of the largest member's size; none: its own.
  std::optional<uint32_t> mem_obj_id;  // [checked] < number of values
  StorageType storage = StorageType::unset;
  MemoryLayout layout = MemoryLayout::unset;
  GraphDtype staging_dtype = GraphDtype::unset;  // at the delegate's boundary; unset: dtype

  bool operator==(const GraphTensor&) const = default;
};

struct IntList {
  std::vector<int64_t> items;  // the numbers
  bool operator==(const IntList&) const = default;
};
struct ValueIdList {
  std::vector<uint32_t> ids;  // [checked] value ids; none is another ValueIdList
  bool operator==(const ValueIdList&) const = default;
};
// An integer that is known only when the graph runs.
struct SymInt {
  int32_t placeholder = 0;  // what the file stores; means nothing
  bool operator==(const SymInt&) const = default;
};

// In the order of the file's union, whose tag is index() + 1. Scalars are deduplicated by the
// exporter through Python equality, so a float argument may arrive as an int64_t and the reverse.
using GraphValue = std::variant<Null, int64_t, double, bool, GraphTensor, IntList, DoubleList,
                                BoolList, ValueIdList, std::string, SymInt>;

struct OperatorCall {
  uint32_t node_id = 0;        // of the exporter's node, for messages
  std::string name;            // [checked] not empty; "et_vk.linear_q4gsw.default"
  std::vector<uint32_t> args;  // [checked] value ids in schema order, then what the call produces;
                               // [checked] count and packing, for operators known to
                               // operator_signature.h
  bool operator==(const OperatorCall&) const = default;
};

struct GraphConstant {
  std::string named_key;  // key of a DataMap; empty: the bytes are in Delegate::constants
  uint64_t offset = 0;    // in Delegate::constants; kNamedDataOffset with a key
  ByteRange data;         // [checked] exactly the bytes that the file promises

  // Whether it is the same statement of the file; the bytes themselves are not compared.
  friend bool same_reference(const GraphConstant& a, const GraphConstant& b) {
    return a.named_key == b.named_key && a.offset == b.offset && a.data.size() == b.data.size();
  }
};
inline constexpr uint64_t kNamedDataOffset = UINT64_MAX;

struct Graph {
  std::string version;
  std::vector<OperatorCall> chain;
  std::vector<GraphValue> values;
  std::vector<uint32_t> inputs;  // [checked] ids of Tensors or SymInts
  std::vector<uint32_t> outputs;
  std::vector<GraphConstant> constants;
  std::vector<GraphConstant> shaders;  // [checked] empty: no exporter writes any
  StorageType storage_override = StorageType::unset;
  MemoryLayout layout_override = MemoryLayout::unset;
};

// Bytes of a dense tensor of the given type and dims. Code invalid_program when the type has no
// element size or the product does not fit in 64 bits.
Result<uint64_t> tensor_bytes(GraphDtype dtype, const std::vector<uint32_t>& dims);

}  // namespace ptero::pte
