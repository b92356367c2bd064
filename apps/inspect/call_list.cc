// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/call_list.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/printable.h"
#include "inspect/report.h"
#include "inspect/text.h"

namespace ptero::inspect {
namespace {

using pte::Graph;
using pte::GraphTensor;

// "[a, b, c, ... 97 more]"
template <typename Items, typename Format>
std::string list_text(const Items& items, Format format) {
  constexpr size_t kShown = 16;
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(items.size(), kShown); ++i) {
    parts.push_back(format(items[i]));
  }
  if (items.size() > kShown) {
    parts.push_back(fmt::format("... {} more", items.size() - kShown));
  }
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string number_text(double x) {
  return fmt::format("{}", x);
}

struct Literal {
  std::string operator()(const pte::Null&) const { return "none"; }
  std::string operator()(int64_t x) const { return fmt::format("{}", x); }
  std::string operator()(double x) const { return number_text(x); }
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  std::string operator()(const std::string& x) const { return fmt::format("\"{}\"", printable(x)); }
  std::string operator()(const pte::IntList& x) const {
    return list_text(x.items, [](int64_t i) { return fmt::format("{}", i); });
  }
  std::string operator()(const pte::DoubleList& x) const { return list_text(x.items, number_text); }
  std::string operator()(const pte::BoolList& x) const {
    return list_text(x.items, [](bool b) { return std::string(b ? "true" : "false"); });
  }
  template <typename T>
  std::string operator()(const T&) const {
    return "?";
  }
};

class GraphLister {
 public:
  GraphLister(const Graph& graph, const ShapeTable& shapes) : graph_(graph), shapes_(shapes) {}

  std::string list() const {
    std::string out = fmt::format("  in   {}\n", produced_list(graph_.inputs));
    const size_t width = std::to_string(graph_.chain.size()).size();
    for (size_t i = 0; i < graph_.chain.size(); ++i) {
      out += fmt::format("  {:>{}}  {}\n", i, std::max<size_t>(width, 3), call(graph_.chain[i]));
    }
    return out + fmt::format("  out  {}\n", produced_list(graph_.outputs));
  }

 private:
  std::string call(const pte::OperatorCall& call) const {
    if (call.args.empty()) {
      return fmt::format("{}()", printable(call.name));
    }
    std::vector<std::string> args;
    for (size_t i = 0; i + 1 < call.args.size(); ++i) {
      args.push_back(used(call.args[i], 0));
    }
    return fmt::format("{}({}) -> {}", printable(call.name), fmt::join(args, ", "),
                       produced(call.args.back()));
  }

  std::string produced_list(const std::vector<uint32_t>& ids) const {
    std::vector<std::string> parts;
    for (const uint32_t id : ids) {
      parts.push_back(produced(id));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  std::string produced(uint32_t id) const {
    if (const auto* tensor = std::get_if<GraphTensor>(&graph_.values[id])) {
      return fmt::format("%{} {} {}", id, short_dtype(tensor->dtype),
                         to_string(shapes_.tensors[id], false));
    }
    if (const auto* items = std::get_if<pte::ValueIdList>(&graph_.values[id])) {
      return produced_list(items->ids);
    }
    if (std::holds_alternative<pte::SymInt>(graph_.values[id])) {
      return fmt::format("%{} = {}", id, symint(id));
    }
    return used(id, 0);
  }

  std::string symint(uint32_t id) const {
    return shapes_.integers[id] ? to_string(*shapes_.integers[id]) : fmt::format("%{}", id);
  }

  // `depth`: lists in lists are followed a little; a reader refuses cycles but not width.
  std::string used(uint32_t id, int depth) const {
    const pte::GraphValue& value = graph_.values[id];
    if (const auto* tensor = std::get_if<GraphTensor>(&value)) {
      const std::string_view kind = !tensor->constant_id ? ""
                                    : tensor->mem_obj_id ? "state "
                                                         : "const ";
      return kind.empty() ? fmt::format("%{}", id)
                          : fmt::format("{}%{} {} {}", kind, id, short_dtype(tensor->dtype),
                                        to_string(shapes_.tensors[id], false));
    }
    if (const auto* items = std::get_if<pte::ValueIdList>(&value)) {
      return depth > 2 ? "[...]"
                       : list_text(items->ids, [&](uint32_t i) { return used(i, depth + 1); });
    }
    if (std::holds_alternative<pte::SymInt>(value)) {
      return symint(id);
    }
    return std::visit(Literal(), value);
  }

  const Graph& graph_;
  const ShapeTable& shapes_;
};

// Values of a method, outside of its graphs.
class PlanLister {
 public:
  explicit PlanLister(const pte::ExecutionPlan& plan) : plan_(plan) {}

  std::string operator()(const pte::KernelCall& x) const {
    const std::string name = printable(full_name(plan_.operators[x.op]));
    if (x.args.empty()) {
      return fmt::format("{}()", name);
    }
    // The result comes last, for out variants twice: as the out argument and as what is returned.
    std::vector<uint32_t> args(x.args.begin(), x.args.end() - 1);
    if (!args.empty() && args.back() == x.args.back()) {
      args.pop_back();
    }
    return fmt::format("{}({}) -> {}", name, used_list(args), produced(x.args.back()));
  }
  std::string operator()(const pte::DelegateCall& x) const {
    return fmt::format("call delegate {}({})", x.delegate, used_list(x.args));
  }
  std::string operator()(const pte::MoveCall& x) const {
    return fmt::format("move {} -> %{}", used(x.from), x.to);
  }
  std::string operator()(const pte::JumpFalseCall& x) const {
    return fmt::format("jump to {} unless {}", x.destination, used(x.condition));
  }
  std::string operator()(const pte::FreeCall& x) const { return fmt::format("free %{}", x.value); }

 private:
  std::string used_list(const std::vector<uint32_t>& ids) const {
    return fmt::format("{}", fmt::join(used_each(ids), ", "));
  }
  std::vector<std::string> used_each(const std::vector<uint32_t>& ids) const {
    std::vector<std::string> parts;
    for (const uint32_t id : ids) {
      parts.push_back(used(id));
    }
    return parts;
  }

  std::string produced(uint32_t id) const {
    const auto* tensor = std::get_if<pte::Tensor>(&plan_.values[id]);
    return tensor == nullptr ? used(id)
                             : fmt::format("%{} {}", id, format_tensor(describe_tensor(*tensor)));
  }

  std::string used(uint32_t id) const {
    const pte::Value& value = plan_.values[id];
    if (const auto* tensor = std::get_if<pte::Tensor>(&value)) {
      const bool constant = tensor->data_buffer > 0 || (tensor->extra && tensor->extra->external);
      return constant ? fmt::format("const %{} {}", id, format_tensor(describe_tensor(*tensor)))
                      : fmt::format("%{}", id);
    }
    if (const auto* list = std::get_if<pte::IntIdList>(&value)) {
      return list_text(list->ids, [this](uint32_t item) { return used(item); });
    }
    if (const auto* list = std::get_if<pte::TensorIdList>(&value)) {
      return list_text(list->ids, [this](uint32_t item) { return used(item); });
    }
    if (const auto* list = std::get_if<pte::OptionalTensorIdList>(&value)) {
      return list_text(list->ids, [this](std::optional<uint32_t> item) {
        return item ? used(*item) : std::string("none");
      });
    }
    return std::visit(Literal(), value);
  }

  const pte::ExecutionPlan& plan_;
};

std::string list_method(const LoadedProgram& loaded, size_t index) {
  const pte::ExecutionPlan& plan = loaded.program.plans[index];
  std::string out = fmt::format("method {}\n", printable(plan.name));
  for (const pte::Chain& chain : plan.chains) {
    for (size_t i = 0; i < chain.instructions.size(); ++i) {
      out += fmt::format("  {:>3}  {}\n", i, std::visit(PlanLister(plan), chain.instructions[i]));
    }
  }
  const std::vector<ShapeTable> tables = trace_plan(loaded, index);
  for (size_t i = 0; i < tables.size(); ++i) {
    const LoadedDelegate& delegate = loaded.delegates[index][i];
    out += fmt::format("\ndelegate {} of {} ({})\n", i, printable(plan.name),
                       printable(plan.delegates[i].id));
    out += delegate.graph ? GraphLister(*delegate.graph, tables[i]).list()
                          : "  its calls are the backend's own and not listed\n";
  }
  return out;
}

}  // namespace

std::string to_call_list(const LoadedProgram& loaded) {
  std::string out;
  for (size_t i = 0; i < loaded.program.plans.size(); ++i) {
    const pte::ExecutionPlan& plan = loaded.program.plans[i];
    const bool computes = std::ranges::any_of(
        plan.chains, [](const pte::Chain& chain) { return !chain.instructions.empty(); });
    if (computes) {
      out += fmt::format("{}{}", out.empty() ? "" : "\n", list_method(loaded, i));
    }
  }
  return out.empty() ? "The program calls nothing.\n" : out;
}

std::string_view short_dtype(pte::GraphDtype dtype) {
  switch (dtype) {
    case pte::GraphDtype::boolean:
      return "bool";
    case pte::GraphDtype::uint8:
      return "u8";
    case pte::GraphDtype::int8:
      return "i8";
    case pte::GraphDtype::int32:
      return "i32";
    case pte::GraphDtype::float16:
      return "f16";
    case pte::GraphDtype::float32:
      return "f32";
    case pte::GraphDtype::float64:
      return "f64";
    case pte::GraphDtype::int64:
      return "i64";
    case pte::GraphDtype::unset:
      return "?";
  }
  return "?";
}

}  // namespace ptero::inspect
