// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/json.h"

#include <cmath>
#include <variant>

#include <nlohmann/json.hpp>

namespace ptero::inspect {
namespace {

using Json = nlohmann::ordered_json;

// JSON knows no infinities; they become text.
Json number(double x) {
  return std::isfinite(x) ? Json(x) : Json(std::isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
}

Json shape_json(const Shape& shape) {
  Json dims = Json::array();
  for (const Dim& dim : shape) {
    Json entry{{"size", dim.size}};
    if (!dim.symbol.empty()) {
      entry["symbol"] = dim.symbol;
    }
    if (dim.maybe) {
      entry["maybe_smaller"] = true;
    }
    dims.push_back(std::move(entry));
  }
  return dims;
}

Json tensor_json(const TensorReport& tensor) {
  constexpr const char* kDynamism[] = {"fixed", "bounded", "unbounded"};
  Json sizes = Json::array();
  for (const Dim& dim : tensor.shape) {
    sizes.push_back(dim.size);
  }
  return {{"dtype", tensor.dtype},
          {"shape", sizes},
          {"dims", shape_json(tensor.shape)},
          {"dynamism", kDynamism[static_cast<size_t>(tensor.dynamism)]}};
}

struct ConstantJson {
  const ValueReport& report;
  Json operator()(const pte::Null&) const { return nullptr; }
  Json operator()(int64_t x) const { return x; }
  Json operator()(bool x) const { return x; }
  Json operator()(double x) const { return number(x); }
  Json operator()(const std::string& x) const { return x; }
  Json operator()(const pte::IntIdList&) const { return report.int_items; }
  Json operator()(const pte::DoubleList& x) const {
    Json items = Json::array();
    for (const double item : x.items) {
      items.push_back(number(item));
    }
    return items;
  }
  Json operator()(const pte::BoolList& x) const { return x.items; }
  template <typename T>
  Json operator()(const T&) const {
    return nullptr;
  }
};

Json value_json(const ValueReport& value) {
  Json json{{"kind", value.kind}};
  if (value.tensor) {
    json.update(tensor_json(*value.tensor));
  }
  if (value.constant) {
    json["value"] = std::visit(ConstantJson{value}, *value.constant);
  }
  return json;
}

template <typename T, typename ToJson>
Json array_of(const std::vector<T>& items, ToJson to_json) {
  Json array = Json::array();
  for (const T& item : items) {
    array.push_back(to_json(item));
  }
  return array;
}

Json operators_json(const std::vector<OpCount>& operators) {
  return array_of(operators, [](const OpCount& op) {
    return Json{{"name", op.name}, {"family", family_info(op.family).name}, {"count", op.count}};
  });
}

Json graph_json(const GraphReport& graph) {
  Json by_dtype = Json::object();
  for (const auto& [dtype, count] : graph.constants.by_dtype) {
    by_dtype[dtype] = {{"entries", count.tensors}, {"bytes", count.bytes}};
  }
  const MemoryReport& memory = graph.memory;
  return {{"calls", graph.calls},
          {"values", graph.values},
          {"dispatches", graph.dispatches},
          {"inputs", array_of(graph.inputs, tensor_json)},
          {"outputs", array_of(graph.outputs, tensor_json)},
          {"operators", operators_json(graph.operators)},
          {"constants",
           {{"tensors", graph.constants.tensors},
            {"entries", graph.constants.entries},
            {"bytes", graph.constants.bytes},
            {"by_dtype", by_dtype}}},
          {"memory",
           {{"objects", memory.objects},
            {"object_bytes", memory.object_bytes},
            {"object_tensors", memory.object_tensors},
            {"unshared_bytes", memory.unshared_bytes},
            {"dedicated_tensors", memory.dedicated_tensors},
            {"dedicated_bytes", memory.dedicated_bytes},
            {"state_tensors", memory.state_tensors},
            {"state_bytes", memory.state_bytes}}}};
}

Json delegate_json(const DelegateReport& delegate) {
  Json specs = Json::array();
  for (const auto& [key, value] : delegate.compile_specs) {
    specs.push_back({{"key", key}, {"value", value}});
  }
  Json json{{"backend", delegate.backend}, {"bytes", delegate.bytes}, {"compile_specs", specs}};
  json["graph"] = delegate.graph ? graph_json(*delegate.graph) : Json(nullptr);
  return json;
}

Json method_json(const MethodReport& method) {
  return {{"name", method.name},
          {"constant", method.constant},
          {"inputs", array_of(method.inputs, value_json)},
          {"outputs", array_of(method.outputs, value_json)},
          {"instructions", method.instructions},
          {"delegate_calls", method.delegate_calls},
          {"jumps", method.jumps},
          {"planned_bytes", method.planned_bytes},
          {"host_operators", operators_json(method.host_operators)},
          {"delegates", array_of(method.delegates, delegate_json)}};
}

Json bundled_json(const BundledMethodReport& method) {
  return {{"name", method.name}, {"cases", method.cases}, {"bytes", method.bytes}};
}

Json entry_json(const DataEntryReport& entry) {
  Json json{{"key", entry.key}, {"bytes", entry.bytes}};
  json["tensor"] = entry.tensor ? tensor_json(*entry.tensor) : Json(nullptr);
  return json;
}

}  // namespace

std::string to_json(const Report& report) {
  Json json{{"path", report.path},
            {"format", report.format},
            {"bytes", report.bytes},
            {"version", report.version},
            {"segments", report.segments},
            {"segment_bytes", report.segment_bytes},
            {"named_data", report.named_data}};
  if (report.format == "ptd") {
    json["entries"] = array_of(report.entries, entry_json);
  } else {
    json["extended_header"] = report.layout.extended_header;
    json["flatbuffer_bytes"] = report.layout.flatbuffer_size;
    json["segment_base_offset"] = report.layout.segment_base_offset;
    json["host_constants"] = {{"tensors", report.host_constants.tensors},
                              {"bytes", report.host_constants.bytes}};
    json["methods"] = array_of(report.methods, method_json);
    json["obstacles"] = report.obstacles;
    if (report.format == "bpte") {
      json["bundled"] = array_of(report.bundled, bundled_json);
    }
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ptero::inspect
