// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/report_graph.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <variant>

#include "base/checked.h"

namespace ptero::inspect {
namespace {

using pte::Graph;
using pte::GraphTensor;

uint64_t bytes_of(const GraphTensor& tensor) {
  const Result<uint64_t> bytes = pte::tensor_bytes(tensor.dtype, tensor.dims);
  return bytes.ok() ? *bytes : 0;
}

template <typename Visit>
void for_each_tensor(const Graph& graph, Visit visit) {
  for (const pte::GraphValue& value : graph.values) {
    if (const auto* tensor = std::get_if<GraphTensor>(&value)) {
      visit(*tensor);
    }
  }
}

ConstantsReport count_constants(const Graph& graph) {
  ConstantsReport report;
  std::set<std::tuple<std::string, uint64_t, uint64_t>> seen;
  for_each_tensor(graph, [&](const GraphTensor& tensor) {
    if (!tensor.constant_id || *tensor.constant_id >= graph.constants.size()) {
      return;
    }
    ++report.tensors;
    const pte::GraphConstant& constant = graph.constants[*tensor.constant_id];
    const uint64_t bytes = constant.data.size();
    if (seen.insert({constant.named_key, constant.offset, bytes}).second) {
      ++report.entries;
      report.bytes = add_saturated(report.bytes, bytes);
      ByteCount& of_type = report.by_dtype[std::string(pte::name_of(tensor.dtype))];
      ++of_type.tensors;
      of_type.bytes = add_saturated(of_type.bytes, bytes);
    }
  });
  return report;
}

MemoryReport count_memory(const Graph& graph) {
  MemoryReport report;
  std::map<uint32_t, uint64_t> objects;
  for_each_tensor(graph, [&](const GraphTensor& tensor) {
    const uint64_t bytes = bytes_of(tensor);
    if (tensor.constant_id && tensor.mem_obj_id) {
      ++report.state_tensors;
      report.state_bytes = add_saturated(report.state_bytes, bytes);
    } else if (tensor.mem_obj_id) {
      ++report.object_tensors;
      report.unshared_bytes = add_saturated(report.unshared_bytes, bytes);
      uint64_t& object = objects[*tensor.mem_obj_id];
      object = std::max(object, bytes);
    } else if (!tensor.constant_id) {
      ++report.dedicated_tensors;
      report.dedicated_bytes = add_saturated(report.dedicated_bytes, bytes);
    }
  });
  report.objects = objects.size();
  for (const auto& [id, bytes] : objects) {
    report.object_bytes = add_saturated(report.object_bytes, bytes);
  }
  return report;
}

uint64_t list_size(const Graph& graph, uint32_t id) {
  const auto* list = std::get_if<pte::ValueIdList>(&graph.values[id]);
  return list == nullptr ? 1 : list->ids.size();
}

uint64_t count_dispatches(const Graph& graph) {
  uint64_t total = 0;
  for (const pte::OperatorCall& call : graph.chain) {
    switch (op_info(call.name).cost) {
      case Cost::none:
        break;
      case Cost::one:
        total += 1;
        break;
      case Cost::two:
        total += 2;
        break;
      case Cost::one_per_input:
        total += call.args.empty() ? 0 : list_size(graph, call.args.front());
        break;
      case Cost::one_per_output:
        total += call.args.empty() ? 0 : list_size(graph, call.args.back());
        break;
    }
  }
  return total;
}

TensorReport describe(const Graph& graph, const ShapeTable& shapes, uint32_t id) {
  const auto* tensor = std::get_if<GraphTensor>(&graph.values[id]);
  if (tensor == nullptr) {
    return {.dtype = "symint"};
  }
  const Shape& shape = shapes.tensors[id];
  const bool dynamic =
      std::ranges::any_of(shape, [](const Dim& d) { return d.maybe || !d.symbol.empty(); });
  return {.dtype = std::string(pte::name_of(tensor->dtype)),
          .shape = shape,
          .dynamism = dynamic ? pte::ShapeDynamism::bounded : pte::ShapeDynamism::fixed};
}

}  // namespace

uint64_t add_saturated(uint64_t a, uint64_t b) {
  return checked_add(a, b).value_or(UINT64_MAX);
}

std::vector<OpCount> sorted_counts(const std::map<std::string, uint64_t>& counts) {
  std::vector<OpCount> sorted;
  for (const auto& [name, count] : counts) {
    sorted.push_back({name, op_info(name).family, count});
  }
  std::ranges::stable_sort(sorted, std::greater<>(), &OpCount::count);
  return sorted;
}

GraphReport report_graph(const Graph& graph, const ShapeTable& shapes) {
  GraphReport report;
  report.calls = graph.chain.size();
  report.values = graph.values.size();
  std::map<std::string, uint64_t> counts;
  for (const pte::OperatorCall& call : graph.chain) {
    ++counts[call.name];
  }
  report.operators = sorted_counts(counts);
  for (const uint32_t id : graph.inputs) {
    report.inputs.push_back(describe(graph, shapes, id));
  }
  for (const uint32_t id : graph.outputs) {
    report.outputs.push_back(describe(graph, shapes, id));
  }
  report.constants = count_constants(graph);
  report.memory = count_memory(graph);
  report.dispatches = count_dispatches(graph);
  return report;
}

}  // namespace ptero::inspect
