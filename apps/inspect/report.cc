// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/report.h"

#include <algorithm>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "inspect/printable.h"
#include "inspect/report_graph.h"

namespace ptero::inspect {
namespace {

using pte::ExecutionPlan;

// ---- method values ----

struct KindName {
  std::string operator()(const pte::Null&) const { return "none"; }
  std::string operator()(int64_t) const { return "int"; }
  std::string operator()(bool) const { return "bool"; }
  std::string operator()(double) const { return "double"; }
  std::string operator()(const pte::Tensor&) const { return "tensor"; }
  std::string operator()(const std::string&) const { return "string"; }
  std::string operator()(const pte::IntIdList&) const { return "int list"; }
  std::string operator()(const pte::DoubleList&) const { return "double list"; }
  std::string operator()(const pte::BoolList&) const { return "bool list"; }
  std::string operator()(const pte::TensorIdList&) const { return "tensor list"; }
  std::string operator()(const pte::OptionalTensorIdList&) const { return "tensor list"; }
};

ValueReport describe_value(const ExecutionPlan& plan, uint32_t id,
                           const std::map<uint32_t, Shape>& traced) {
  const pte::Value& value = plan.values[id];
  ValueReport report;
  report.kind = std::visit(KindName(), value);
  if (const auto* tensor = std::get_if<pte::Tensor>(&value)) {
    report.tensor = describe_tensor(*tensor);
    const auto known = traced.find(id);
    // A trace that lost what changes knows less than the file, which says that something does.
    if (tensor->dynamism == pte::ShapeDynamism::bounded && known != traced.end() &&
        std::ranges::any_of(known->second,
                            [](const Dim& dim) { return dim.maybe || !dim.symbol.empty(); })) {
      report.tensor->shape = known->second;
    }
  } else if (plan.chains.empty() || std::ranges::all_of(plan.chains, [](const auto& c) {
               return c.instructions.empty();
             })) {
    report.constant = value;
    if (const auto* list = std::get_if<pte::IntIdList>(&value)) {
      for (const uint32_t item : list->ids) {
        const auto* number = std::get_if<int64_t>(&plan.values[item]);
        report.int_items.push_back(number == nullptr ? 0 : *number);
      }
    }
  }
  return report;
}

// Shapes of a plan's tensors as its graphs name them.
std::map<uint32_t, Shape> traced_values(const LoadedProgram& loaded, size_t plan_index,
                                        const std::vector<ShapeTable>& tables) {
  const ExecutionPlan& plan = loaded.program.plans[plan_index];
  std::map<uint32_t, Shape> shapes;
  for (const pte::Chain& chain : plan.chains) {
    for (const pte::Instruction& instruction : chain.instructions) {
      const auto* call = std::get_if<pte::DelegateCall>(&instruction);
      if (call == nullptr || !loaded.delegates[plan_index][call->delegate].graph) {
        continue;
      }
      const pte::Graph& graph = *loaded.delegates[plan_index][call->delegate].graph;
      std::vector<uint32_t> ids = graph.inputs;
      ids.insert(ids.end(), graph.outputs.begin(), graph.outputs.end());
      for (size_t i = 0; i < std::min(ids.size(), call->args.size()); ++i) {
        const Shape& shape = tables[call->delegate].tensors[ids[i]];
        const auto* tensor = std::get_if<pte::Tensor>(&plan.values[call->args[i]]);
        if (tensor != nullptr && tensor->sizes.size() == shape.size()) {
          shapes.try_emplace(call->args[i], shape);
        }
      }
    }
  }
  return shapes;
}

// ---- delegates ----

// One byte, the usual case, reads as a flag or number; text as text; the rest in hex.
std::string spec_value(const pte::CompileSpec& spec) {
  const auto& bytes = spec.value;
  if (bytes.size() == 1) {
    return fmt::format("{}", std::to_integer<int>(bytes[0]));
  }
  const bool text = std::ranges::all_of(bytes, [](std::byte b) {
    return std::to_integer<int>(b) >= 0x20 && std::to_integer<int>(b) < 0x7f;
  });
  constexpr size_t kShown = 64;
  std::string out = text ? "\"" : "0x";
  for (size_t i = 0; i < std::min(bytes.size(), kShown); ++i) {
    out += text ? std::string(1, static_cast<char>(bytes[i]))
                : fmt::format("{:02x}", std::to_integer<int>(bytes[i]));
  }
  out += text ? "\"" : "";
  return bytes.size() > kShown ? fmt::format("{}... ({} bytes)", out, bytes.size()) : out;
}

DelegateReport report_delegate(const pte::BackendDelegate& delegate, const LoadedDelegate& loaded,
                               const ShapeTable& shapes) {
  DelegateReport report;
  report.backend = delegate.id;
  report.bytes = loaded.bytes;
  for (const pte::CompileSpec& spec : delegate.compile_specs) {
    report.compile_specs.emplace_back(spec.key, spec_value(spec));
  }
  if (loaded.graph) {
    report.graph = report_graph(*loaded.graph, shapes);
  }
  return report;
}

MethodReport report_method(const LoadedProgram& loaded, size_t index) {
  const ExecutionPlan& plan = loaded.program.plans[index];
  const std::vector<ShapeTable> tables = trace_plan(loaded, index);
  const std::map<uint32_t, Shape> traced = traced_values(loaded, index, tables);
  MethodReport report;
  report.name = plan.name;
  for (const uint32_t id : plan.inputs) {
    report.inputs.push_back(describe_value(plan, id, traced));
  }
  for (const uint32_t id : plan.outputs) {
    report.outputs.push_back(describe_value(plan, id, traced));
  }
  std::map<std::string, uint64_t> host_counts;
  for (const pte::Chain& chain : plan.chains) {
    report.instructions += chain.instructions.size();
    for (const pte::Instruction& instruction : chain.instructions) {
      if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
        ++host_counts[full_name(plan.operators[call->op])];
      }
      report.delegate_calls += std::holds_alternative<pte::DelegateCall>(instruction) ? 1 : 0;
      report.jumps += std::holds_alternative<pte::JumpFalseCall>(instruction) ? 1 : 0;
    }
  }
  report.constant = report.instructions == 0;
  report.host_operators = sorted_counts(host_counts);
  for (const uint64_t bytes : plan.non_const_buffer_sizes) {
    report.planned_bytes = add_saturated(report.planned_bytes, bytes);
  }
  for (size_t i = 0; i < plan.delegates.size(); ++i) {
    report.delegates.push_back(
        report_delegate(plan.delegates[i], loaded.delegates[index][i], tables[i]));
  }
  return report;
}

// ---- what would not run ----

// "a, b and 3 more".
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
  }
  return names.size() > kShown ? fmt::format("{} and {} more", text, names.size() - kShown) : text;
}

void add_missing(const std::vector<OpCount>& used, const std::vector<std::string>& supported,
                 const std::string& place, std::vector<std::string>& obstacles) {
  std::vector<std::string> missing;
  for (const OpCount& op : used) {
    if (std::ranges::find(supported, op.name) == supported.end()) {
      missing.push_back(fmt::format("{} ({}x)", printable(op.name), op.count));
    }
  }
  if (!missing.empty() && !supported.empty()) {
    obstacles.push_back(
        fmt::format("{} uses operators that this build cannot run: {}.", place, listed(missing)));
  }
}

std::vector<std::string> find_obstacles(const std::vector<MethodReport>& methods,
                                        const Capabilities& capabilities) {
  std::vector<std::string> obstacles;
  bool graphs = false;
  bool host = false;
  for (const MethodReport& method : methods) {
    const std::string name = printable(method.name);
    for (size_t i = 0; i < method.delegates.size(); ++i) {
      const DelegateReport& delegate = method.delegates[i];
      if (!delegate.graph) {
        obstacles.push_back(fmt::format(
            "Delegate {} of method {} is for the backend {}; this engine runs delegates of {}.", i,
            name, printable(delegate.backend), pte::kVulkanBackendId));
        continue;
      }
      graphs = graphs || !delegate.graph->operators.empty();
      add_missing(delegate.graph->operators, capabilities.graph_operators,
                  fmt::format("Delegate {} of method {}", i, name), obstacles);
    }
    if (method.jumps > 0 && !capabilities.jumps) {
      obstacles.push_back(
          fmt::format("Method {} has jumps ({}); this build runs methods without control flow.",
                      name, method.jumps));
    }
    host = host || !method.host_operators.empty();
    add_missing(method.host_operators, capabilities.host_operators,
                fmt::format("Method {} outside of its delegates", name), obstacles);
  }
  if (host && capabilities.host_operators.empty()) {
    obstacles.insert(obstacles.begin(),
                     "This build runs no operators outside of delegates yet, and the program has "
                     "some.");
  }
  if (graphs && capabilities.graph_operators.empty()) {
    obstacles.insert(obstacles.begin(), "This build runs no operators of delegates yet.");
  }
  return obstacles;
}

// ---- the rest of the file ----

ByteCount count_host_constants(const pte::Program& program) {
  ByteCount count;
  std::set<uint32_t> seen;
  for (const ExecutionPlan& plan : program.plans) {
    for (const pte::Value& value : plan.values) {
      const auto* tensor = std::get_if<pte::Tensor>(&value);
      if (tensor == nullptr || tensor->data_buffer == 0 || tensor->allocation ||
          (tensor->extra && tensor->extra->external) || !seen.insert(tensor->data_buffer).second) {
        continue;
      }
      const Result<uint64_t> bytes = pte::tensor_bytes(tensor->scalar_type, tensor->sizes);
      ++count.tensors;
      count.bytes = add_saturated(count.bytes, bytes.ok() ? *bytes : 0);
    }
  }
  return count;
}

template <typename Sizes>
Shape fixed_shape(const Sizes& sizes) {
  Shape shape;
  for (const auto size : sizes) {
    shape.push_back({.size = static_cast<uint64_t>(size)});
  }
  return shape;
}

BundledMethodReport report_bundled(const pte::BundledMethod& method) {
  BundledMethodReport report{.name = method.name, .cases = method.cases.size()};
  for (const pte::BundledTestCase& test_case : method.cases) {
    for (const auto* values : {&test_case.inputs, &test_case.expected_outputs}) {
      for (const pte::BundledValue& value : *values) {
        if (const auto* tensor = std::get_if<pte::BundledTensor>(&value)) {
          report.bytes = add_saturated(report.bytes, tensor->data.size());
        }
      }
    }
  }
  return report;
}

void report_segments(const std::vector<ByteRange>& segments, Report& report) {
  report.segments = segments.size();
  for (const ByteRange& segment : segments) {
    report.segment_bytes = add_saturated(report.segment_bytes, segment.size());
  }
}

void report_tensors(const pte::FlatTensor& file, Report& report) {
  report.format = "ptd";
  report.version = file.version;
  report_segments(file.segments, report);
  report.named_data = file.entries.size();
  for (const pte::FlatTensorEntry& entry : file.entries) {
    DataEntryReport added{.key = entry.key, .bytes = file.segments[entry.segment].size()};
    if (entry.layout) {
      added.tensor = TensorReport{.dtype = std::string(pte::name_of(entry.layout->scalar_type)),
                                  .shape = fixed_shape(entry.layout->sizes)};
    }
    report.entries.push_back(std::move(added));
  }
}

}  // namespace

std::vector<ShapeTable> trace_plan(const LoadedProgram& loaded, size_t plan_index) {
  const ExecutionPlan& plan = loaded.program.plans[plan_index];
  std::vector<ShapeTable> tables(plan.delegates.size());
  std::map<uint32_t, Shape> known;
  const auto trace = [&](uint32_t delegate, const std::vector<uint32_t>& args) {
    const pte::Graph& graph = *loaded.delegates[plan_index][delegate].graph;
    std::vector<std::optional<Shape>> inputs;
    for (const uint32_t id : args) {
      const auto* tensor = std::get_if<pte::Tensor>(&plan.values[id]);
      const auto found = known.find(id);
      if (found != known.end()) {
        inputs.push_back(found->second);
      } else if (tensor != nullptr) {
        inputs.push_back(describe_tensor(*tensor).shape);
      } else {
        inputs.emplace_back();
      }
    }
    inputs.resize(graph.inputs.size());
    tables[delegate] = trace_shapes(graph, inputs);
    for (size_t i = 0; i < graph.outputs.size() && graph.inputs.size() + i < args.size(); ++i) {
      known[args[graph.inputs.size() + i]] = tables[delegate].tensors[graph.outputs[i]];
    }
  };
  for (const pte::Chain& chain : plan.chains) {
    for (const pte::Instruction& instruction : chain.instructions) {
      const auto* call = std::get_if<pte::DelegateCall>(&instruction);
      if (call != nullptr && loaded.delegates[plan_index][call->delegate].graph) {
        trace(call->delegate, call->args);
      }
    }
  }
  for (uint32_t i = 0; i < tables.size(); ++i) {  // a delegate that nobody calls
    if (loaded.delegates[plan_index][i].graph && tables[i].tensors.empty()) {
      trace(i, {});
    }
  }
  return tables;
}

TensorReport describe_tensor(const pte::Tensor& tensor) {
  TensorReport report{.dtype = std::string(pte::name_of(tensor.scalar_type)),
                      .shape = fixed_shape(tensor.sizes),
                      .dynamism = tensor.dynamism};
  for (Dim& dim : report.shape) {
    dim.maybe = tensor.dynamism != pte::ShapeDynamism::fixed && dim.size > 1;
  }
  return report;
}

std::string full_name(const pte::Operator& op) {
  return op.overload.empty() ? op.name : fmt::format("{}.{}", op.name, op.overload);
}

Report make_report(const LoadedFile& file, const Capabilities& capabilities) {
  Report report;
  report.path = file.path;
  report.bytes = file.bytes;
  if (file.tensors) {
    report_tensors(*file.tensors, report);
    return report;
  }
  if (file.bundle) {
    for (const pte::BundledMethod& method : file.bundle->methods) {
      report.bundled.push_back(report_bundled(method));
    }
  }
  const LoadedProgram& loaded = *file.program;
  report.format = file.bundle ? "bpte" : "pte";
  report.version = loaded.program.version;
  report.layout = loaded.program.layout;
  report_segments(loaded.program.segments, report);
  report.named_data = loaded.program.named_data.size();
  report.host_constants = count_host_constants(loaded.program);
  for (size_t i = 0; i < loaded.program.plans.size(); ++i) {
    report.methods.push_back(report_method(loaded, i));
  }
  report.obstacles = find_obstacles(report.methods, capabilities);
  return report;
}

}  // namespace ptero::inspect
