// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a VK00 graph, with inline constants and a data map of three keys behind it, and
// then everything a graph builder would do first: follow every id.
#include <array>

#include "pte/fuzz_walk.h"
#include "pte/graph_reader.h"
#include "pte/operator_signature.h"

namespace ptero::pte {
namespace {

DataMap named_data() {
  Program program;
  const std::array<const char*, 3> keys = {"weight", "table.", "w"};
  for (uint32_t i = 0; i < keys.size(); ++i) {
    program.segments.push_back(ByteRange::whole(own_bytes(std::vector<std::byte>(16 << (2 * i)))));
    program.named_data.push_back({keys[i], i});
  }
  DataMap map;
  fuzz_require(map.add(program).ok());
  return map;
}

void walk(const Graph& graph) {
  const size_t count = graph.values.size();
  for (const GraphValue& value : graph.values) {
    if (const auto* tensor = std::get_if<GraphTensor>(&value)) {
      const Result<uint64_t> bytes = tensor_bytes(tensor->dtype, tensor->dims);
      fuzz_require(bytes.ok());
      fuzz_require(!tensor->mem_obj_id || *tensor->mem_obj_id < count);
      if (tensor->constant_id) {
        fuzz_require(*tensor->constant_id < graph.constants.size());
        const ByteRange& data = graph.constants[*tensor->constant_id].data;
        fuzz_require(data.size() == *bytes);
        fuzz_touch(data);
      }
    } else if (const auto* list = std::get_if<ValueIdList>(&value)) {
      for (const uint32_t id : list->ids) {
        fuzz_require(id < count && !std::holds_alternative<ValueIdList>(graph.values[id]));
      }
    }
  }
  for (const std::vector<uint32_t>* ids : {&graph.inputs, &graph.outputs}) {
    for (const uint32_t id : *ids) {
      fuzz_require(id < count);
    }
  }
  for (const OperatorCall& call : graph.chain) {
    for (const uint32_t id : call.args) {
      fuzz_require(id < count);
    }
    const OperatorSignature* signature = find_operator_signature(call.name);
    fuzz_require(signature == nullptr || (call.args.size() >= signature->min_args &&
                                          call.args.size() <= signature->max_args));
  }
}

}  // namespace
}  // namespace ptero::pte

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptero::pte;
  static const DataMap kData = named_data();
  Delegate delegate;
  delegate.graph = fuzz_input(data, size);
  delegate.constants = ptero::ByteRange::whole(ptero::own_bytes(std::vector<std::byte>(176)));
  const ptero::Result<Graph> graph = read_graph(delegate, kData);
  if (graph.ok()) {
    walk(*graph);
  }
  return 0;
}
