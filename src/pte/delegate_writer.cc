// SPDX-License-Identifier: BSD-3-Clause
#include "pte/delegate_writer.h"

#include <set>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "base/composed_source.h"
#include "pte/data_map.h"
#include "pte/delegate_reader.h"
#include "pte/flatbuffer_output.h"
#include "pte/graph_reader.h"
#include "schema/vkgraph_generated.h"

namespace ptero::pte {
namespace {

namespace vk = ptero::fbs::vkgraph;
using flatbuffers::Offset;

// Of the flatbuffer, the constants and each constant in the blob, as ExecuTorch's exporter does.
constexpr uint64_t kBlobAlignment = 16;
constexpr uint16_t kDelegateHeaderSize = 30;

class GraphBuilder {
 public:
  Result<std::vector<std::byte>> build(const Graph& graph) {
    const auto version = out_.string(graph.version);
    const auto chain = out_.tables_of(graph.chain, [&](const OperatorCall& x) {
      const auto name = out_.string(x.name);
      return vk::CreateOperatorCall(fbb_, x.node_id, name, out_.numbers<int32_t>(x.args));
    });
    const auto values = out_.tables_of(graph.values, [&](const GraphValue& x) {
      const auto tag = static_cast<vk::GraphTypes>(x.index() + 1);
      return vk::CreateVkValue(fbb_, tag, std::visit([&](const auto& v) { return payload(v); }, x));
    });
    const auto inputs = out_.numbers<uint32_t>(graph.inputs);
    const auto outputs = out_.numbers<uint32_t>(graph.outputs);
    const auto to_bytes = [&](const GraphConstant& x) {
      return vk::CreateVkBytes(fbb_, x.offset, x.data.size(), out_.string(x.named_key));
    };
    const auto constants = out_.tables_of(graph.constants, to_bytes);
    const auto shaders = out_.tables_of(graph.shaders, to_bytes);
    return out_.finish(
        vk::CreateVkGraph(fbb_, version, chain, values, inputs, outputs, constants, shaders,
                          static_cast<vk::VkStorageType>(graph.storage_override),
                          static_cast<vk::VkMemoryLayout>(graph.layout_override)),
        vk::VkGraphIdentifier());
  }

 private:
  Offset<void> payload(const Null&) { return vk::CreateNull(fbb_).Union(); }
  Offset<void> payload(int64_t x) { return vk::CreateInt(fbb_, x).Union(); }
  Offset<void> payload(double x) { return vk::CreateDouble(fbb_, x).Union(); }
  Offset<void> payload(bool x) { return vk::CreateBool(fbb_, x).Union(); }
  Offset<void> payload(const std::string& x) {
    return vk::CreateString(fbb_, out_.string(x)).Union();
  }
  Offset<void> payload(const IntList& x) {
    return vk::CreateIntList(fbb_, out_.numbers<int64_t>(x.items)).Union();
  }
  Offset<void> payload(const DoubleList& x) {
    return vk::CreateDoubleList(fbb_, out_.numbers<double>(x.items)).Union();
  }
  Offset<void> payload(const BoolList& x) {
    return vk::CreateBoolList(fbb_, out_.numbers<uint8_t>(x.items)).Union();
  }
  Offset<void> payload(const ValueIdList& x) {
    return vk::CreateValueList(fbb_, out_.numbers<int32_t>(x.ids)).Union();
  }
  Offset<void> payload(const SymInt& x) { return vk::CreateSymInt(fbb_, x.placeholder).Union(); }
  Offset<void> payload(const GraphTensor& x) {
    // The schema's default is 0, a valid id: "none" is -1 and must be there.
    const auto id = [](const std::optional<uint32_t>& i) {
      return i ? static_cast<int32_t>(*i) : -1;
    };
    const auto dims = out_.numbers<uint32_t>(x.dims);
    return vk::CreateVkTensor(fbb_, static_cast<vk::VkDataType>(x.dtype), dims, id(x.constant_id),
                              id(x.mem_obj_id), static_cast<vk::VkStorageType>(x.storage),
                              static_cast<vk::VkMemoryLayout>(x.layout),
                              static_cast<vk::VkDataType>(x.staging_dtype))
        .Union();
  }

  FlatbufferOutput out_;
  flatbuffers::FlatBufferBuilder& fbb_ = out_.builder();
};

// What the read-back check looks keys up in: the graph's own constants.
Result<DataMap> named_constants(const Graph& graph) {
  FlatTensor file;
  std::set<std::string, std::less<>> keys;
  for (const GraphConstant& constant : graph.constants) {
    if (!constant.named_key.empty() && keys.insert(constant.named_key).second) {
      const auto segment = static_cast<uint32_t>(file.segments.size());
      file.segments.push_back(constant.data);
      file.entries.push_back({constant.named_key, segment, std::nullopt});
    }
  }
  DataMap map;
  PTERO_RETURN_IF_ERROR(map.add(file));
  return map;
}

Status check_blob(const ByteSourcePtr& blob, const Graph& graph) {
  PTERO_ASSIGN_OR_RETURN(const Delegate delegate, read_delegate(ByteRange::whole(blob)));
  PTERO_ASSIGN_OR_RETURN(const DataMap data, named_constants(graph));
  PTERO_RETURN_IF_ERROR(read_graph(delegate, data));
  return ok_status();
}

}  // namespace

Result<ByteSourcePtr> assemble_delegate(const Graph& graph, const ByteRange& constants,
                                        std::string name) {
  PTERO_ASSIGN_OR_RETURN(const std::vector<std::byte> flatbuffer, GraphBuilder().build(graph));
  constexpr uint64_t kFlatbufferOffset =
      *checked_round_up<uint64_t>(kDelegateHeaderSize, kBlobAlignment);
  const uint64_t constants_offset =
      *checked_round_up(kFlatbufferOffset + flatbuffer.size(), kBlobAlignment);

  std::vector<std::byte> head;
  head.reserve(static_cast<size_t>(constants_offset));
  append_u32(head, 0);  // the magic stands where a flatbuffer has its identifier
  append_text(head, "VH00");
  append_u16(head, kDelegateHeaderSize);
  append_u32(head, static_cast<uint32_t>(kFlatbufferOffset));
  append_u32(head, static_cast<uint32_t>(flatbuffer.size()));
  append_u32(head, static_cast<uint32_t>(constants_offset));
  append_u64(head, constants.size());
  head.resize(kFlatbufferOffset);
  head.insert(head.end(), flatbuffer.begin(), flatbuffer.end());

  const std::optional<uint64_t> end = checked_add(constants_offset, constants.size());
  const std::optional<uint64_t> size = end ? checked_round_up(*end, kBlobAlignment) : std::nullopt;
  PTERO_REJECT_IF(!size, invalid_program,
                  "The constants of the delegate exceed the limit of the file format ({} bytes).",
                  UINT64_MAX);
  std::vector<PlacedBytes> parts = {{0, ByteRange::whole(own_bytes(std::move(head), name))},
                                    {constants_offset, constants}};
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr blob,
                         compose_bytes(*size, std::move(parts), std::move(name)));
  // The reader knows every rule of graph.h; nothing leaves here that it would refuse.
  PTERO_RETURN_IF_ERROR(check_blob(blob, graph), "while checking the delegate to write");
  return blob;
}

Result<ByteSourcePtr> pack_inline_constants(Graph& graph) {
  std::vector<PlacedBytes> parts;
  uint64_t size = 0;
  for (GraphConstant& constant : graph.constants) {
    if (!constant.named_key.empty()) {
      continue;
    }
    constant.offset = size;
    parts.push_back({size, constant.data});
    const std::optional<uint64_t> end = checked_add(size, constant.data.size());
    const std::optional<uint64_t> next =
        end ? checked_round_up(*end, kBlobAlignment) : std::nullopt;
    PTERO_REJECT_IF(!next, invalid_program,
                    "The constants of the delegate exceed the limit of the file format ({} bytes).",
                    UINT64_MAX);
    size = *next;
  }
  return compose_bytes(size, std::move(parts), "constants");
}

}  // namespace ptero::pte
