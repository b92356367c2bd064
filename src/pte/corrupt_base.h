// SPDX-License-Identifier: BSD-3-Clause
// Valid model files for the corruption tests, built with FlatBuffers' own builders so that a test
// can then say anything in them: the writer's checks never see these bytes. Every scalar is stored
// (no defaults left out) and no two tables share a vtable, so each field can be changed in place
// without touching another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "schema/bundled_program_generated.h"
#include "schema/flat_tensor_generated.h"
#include "schema/program_generated.h"
#include "schema/vkgraph_generated.h"

namespace ptero::pte::test {

// ---- editing flatbuffers in place ----

template <typename T, typename Table>
void set(const Table* table, flatbuffers::voffset_t slot, T value) {
  auto* base = const_cast<flatbuffers::Table*>(reinterpret_cast<const flatbuffers::Table*>(table));
  std::memcpy(base->GetAddressOf(slot), &value, sizeof(value));
}

// Makes the field absent.
template <typename Table>
void drop(const Table* table, flatbuffers::voffset_t slot) {
  const auto* base = reinterpret_cast<const flatbuffers::Table*>(table);
  std::memset(const_cast<uint8_t*>(base->GetVTable()) + slot, 0, sizeof(flatbuffers::voffset_t));
}

template <typename T>
void set_item(const flatbuffers::Vector<T>* list, size_t index, T value) {
  std::memcpy(const_cast<uint8_t*>(list->Data()) + index * sizeof(T), &value, sizeof(T));
}

// Vectors and strings start with their length. Shorter is always inside the buffer.
inline void set_length(const void* list, uint32_t length) {
  std::memcpy(const_cast<void*>(list), &length, sizeof(length));
}

// Overwrites the characters of a string of the same length.
inline void set_text(const flatbuffers::String* text, std::string_view value) {
  std::memcpy(const_cast<char*>(text->c_str()), value.data(), value.size());
}

// ---- building them ----

inline void prepare(flatbuffers::FlatBufferBuilder& builder) {
  builder.ForceDefaults(true);
  builder.DedupVtables(false);
}

inline std::vector<std::byte> bytes_of(const flatbuffers::FlatBufferBuilder& builder) {
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof(T));
}

inline void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), data, data + text.size());
}

// Puts `header` behind root offset and identifier, as ExecuTorch's writers do.
inline void insert_header(std::vector<std::byte>& bytes, const std::vector<std::byte>& header) {
  uint32_t root = 0;
  std::memcpy(&root, bytes.data(), sizeof(root));
  root += static_cast<uint32_t>(header.size());
  std::memcpy(bytes.data(), &root, sizeof(root));
  bytes.insert(bytes.begin() + 8, header.begin(), header.end());
}

constexpr size_t kAlignment = 128;  // of segments

inline size_t aligned_up(size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr size_t kVhHeaderSize = 32;  // 30 and padding

// The VulkanBackend delegate that ModelFile holds.
std::vector<std::byte> delegate_blob();

// ---- files ----

struct ModelOptions {
  size_t rank = 2;              // of value 0
  size_t plans = 2;             // all but the first return one Int
  size_t shared_calls = 0;      // more KernelCalls, all of them one table
  size_t shared_call_args = 0;  // the length of its list of arguments
  size_t method_name_size = 0;  // another name of that length for the first method
  bool inline_data = false;     // no header, no segments: all data inside the flatbuffer
  bool both_constants = false;  // constant buffers beside a constant segment
};

// The flatbuffer positions below are found anew at each call: edits may not move them.
class ModelFile {
 public:
  explicit ModelFile(const ModelOptions& options = {});

  const fbs::program::Program* program() const;
  const fbs::program::ExecutionPlan* plan() const { return program()->execution_plan()->Get(0); }
  const fbs::program::EValue* value(size_t id) const;
  const fbs::program::Tensor* tensor(size_t id) const { return value(id)->val_as_Tensor(); }
  const fbs::program::Chain* chain() const { return plan()->chains()->Get(0); }
  const fbs::program::Instruction* instruction(size_t index) const;
  const fbs::program::BackendDelegate* delegate(size_t index) const;

  const fbs::vkgraph::VkGraph* graph() const;
  const fbs::vkgraph::VkValue* graph_value(size_t id) const;
  const fbs::vkgraph::VkTensor* graph_tensor(size_t id) const;
  const fbs::vkgraph::OperatorCall* graph_call(size_t index) const;

  // Where the delegate blob starts in the file.
  size_t blob() const { return blob_; }

  template <typename T>
  void put(size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
  }

  std::vector<std::byte> bytes;

 private:
  size_t blob_ = 0;
};

// Reads everything there is: the program, its data map, the first delegate and its graph.
Status read_all(const ByteRange& file);

// Value ids and instruction indices of the model above.
enum : size_t {
  kInput,     // float32 [2, 8], from the caller
  kPlanned,   // float32 [2, 8], in memory 1
  kConstant,  // float32 [4], data buffer 1
  kMutable,   // float32 [4], data buffer 1 of mutable data segment 0
  kExternal,  // float32 [4], in a .ptd under "external.weight"
  kInt,
  kBool,
  kDouble,
  kString,
  kIntList,
  kDoubleList,
  kBoolList,
  kTensorList,
  kOptionalList,
  kNull,
  kCondition,  // bool [1], planned
};
enum : size_t { kKernel, kDelegateCall, kMove, kJump, kFree, kLoopBody, kLoopJump };

// Values and calls of its graph.
enum : size_t {
  kX,          // float32 [2, 8], input
  kWeight,     // uint8 [4, 4], constant 0 under the key "weight"
  kScales,     // float32 [2, 4], constant 1 inline
  kGroupSize,  // Int 4
  kGraphNull,
  kY,     // float32 [2, 4], output
  kList,  // ValueList [kSym, kGroupSize]
  kSym,
  kGraphIntList,
  kGraphDoubleList,
  kGraphBoolList,
  kGraphString,
  kGraphDouble,
  kGraphBool,
  kTable,        // uint8 [16, 4], constant 2 under the key "table."
  kTableScales,  // float32 [16, 2], constant 3 inline
  kIndices,      // int32 [3], input
  kRows,         // float32 [3, 8], output
  kBias,         // float32 [4], constant 4 inline
};
enum : size_t { kLinear, kEmbedding, kChannelLinear, kUnknownCall };

// A .ptd with "x" (float32 [4]) and "y" (no tensor), and a .bpte with one method test.
std::vector<std::byte> flat_tensor_file();
std::vector<std::byte> bundled_file();

}  // namespace ptero::pte::test
