// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/sketch.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "inspect/call_list.h"
#include "inspect/report.h"
#include "inspect/report_graph.h"
#include "inspect/text.h"

namespace ptero::inspect {
namespace {

using pte::Graph;
using pte::GraphTensor;

// "f16 [2, 3]"; plain shapes for the usual float32.
std::string labelled(std::string_view dtype, const Shape& shape) {
  const std::string text = to_string(shape, false);
  return dtype == "f32" || dtype == "float32" ? text : fmt::format("{} {}", dtype, text);
}

class Sketcher {
 public:
  Sketcher(const LoadedProgram& loaded, size_t plan)
      : loaded_(loaded),
        plan_index_(plan),
        plan_(loaded.program.plans[plan]),
        tables_(trace_plan(loaded, plan)) {}

  Sketch run() {
    sketch_.method = plan_.name;
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      producers_[plan_.inputs[i]] = {add_box({.kind = Box::Kind::input,
                                              .title = fmt::format("input {}", i),
                                              .detail = value_text(plan_.inputs[i])})};
    }
    for (const pte::Chain& chain : plan_.chains) {
      for (const pte::Instruction& instruction : chain.instructions) {
        if (const auto* call = std::get_if<pte::DelegateCall>(&instruction)) {
          add_delegate(*call);
        } else if (const auto* kernel = std::get_if<pte::KernelCall>(&instruction)) {
          add_host_call(*kernel);
        } else if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
          // Behind a branch the value may come from either side.
          const std::vector<size_t> from = producers_[move->from];
          std::vector<size_t>& to = producers_[move->to];
          to.insert(to.end(), from.begin(), from.end());
        }
      }
    }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      Box box{.kind = Box::Kind::output,
              .title = fmt::format("output {}", i),
              .detail = value_text(plan_.outputs[i])};
      use_plan_value(plan_.outputs[i], box);
      add_box(std::move(box));
    }
    return std::move(sketch_);
  }

 private:
  size_t add_box(Box box) {
    sketch_.boxes.push_back(std::move(box));
    return sketch_.boxes.size() - 1;
  }

  // ---- outside of delegates ----

  std::string value_text(uint32_t id) const {
    const auto* tensor = std::get_if<pte::Tensor>(&plan_.values[id]);
    if (tensor == nullptr) {
      return "";
    }
    TensorReport report = describe_tensor(*tensor);
    const auto shape = shapes_.find(id);
    if (shape != shapes_.end() && shape->second.size() == report.shape.size()) {
      report.shape = shape->second;
    }
    return format_tensor(report);
  }

  void use_plan_value(uint32_t id, Box& box) const {
    const auto from = producers_.find(id);
    if (from == producers_.end()) {
      return;
    }
    const auto* tensor = std::get_if<pte::Tensor>(&plan_.values[id]);
    const auto shape = shapes_.find(id);
    std::string label;
    if (tensor != nullptr) {
      label = labelled(pte::name_of(tensor->scalar_type),
                       shape != shapes_.end() ? shape->second : describe_tensor(*tensor).shape);
    }
    for (const size_t producer : from->second) {
      box.arrows.push_back({.from = producer, .label = label});
    }
  }

  void add_host_call(const pte::KernelCall& call) {
    ++sketch_.calls;
    Box box{.kind = Box::Kind::host_call,
            .title = full_name(plan_.operators[call.op]),
            .detail = "outside of delegates"};
    for (const uint32_t id : call.args) {
      use_plan_value(id, box);
    }
    const size_t index = add_box(std::move(box));
    if (!call.args.empty()) {
      producers_[call.args.back()] = {index};
    }
  }

  // ---- delegates ----

  void add_delegate(const pte::DelegateCall& call) {
    const LoadedDelegate& delegate = loaded_.delegates[plan_index_][call.delegate];
    if (!delegate.graph) {
      ++sketch_.calls;
      Box box{.kind = Box::Kind::foreign_delegate,
              .title = plan_.delegates[call.delegate].id,
              .detail = format_bytes(delegate.bytes)};
      for (const uint32_t id : call.args) {
        use_plan_value(id, box);
      }
      const size_t index = add_box(std::move(box));
      for (const uint32_t id : call.args) {
        producers_.try_emplace(id, std::vector<size_t>{index});
      }
      return;
    }
    graph_ = &*delegate.graph;
    table_ = &tables_[call.delegate];
    delegate_ = call.delegate;
    sketch_.calls += graph_->chain.size();
    inside_.clear();
    const size_t inputs = std::min(graph_->inputs.size(), call.args.size());
    for (size_t i = 0; i < inputs; ++i) {
      const auto from = producers_.find(call.args[i]);
      if (from != producers_.end() && !from->second.empty()) {
        inside_[graph_->inputs[i]] = from->second.back();
        shapes_.try_emplace(call.args[i], table_->tensors[graph_->inputs[i]]);
        // The input was drawn before its shape was traced.
        Box& box = sketch_.boxes[from->second.back()];
        if (box.kind == Box::Kind::input) {
          box.detail = value_text(call.args[i]);
        }
      }
    }
    for (const pte::OperatorCall& op : graph_->chain) {
      add_call(op);
    }
    for (size_t i = 0; i < graph_->outputs.size() && inputs + i < call.args.size(); ++i) {
      const uint32_t id = call.args[inputs + i];
      shapes_[id] = table_->tensors[graph_->outputs[i]];
      if (const auto from = inside_.find(graph_->outputs[i]); from != inside_.end()) {
        producers_[id] = {from->second};
      }
    }
  }

  void add_call(const pte::OperatorCall& call) {
    if (call.args.empty()) {
      return;
    }
    const OpInfo info = op_info(call.name);
    const uint32_t out = call.args.back();
    const bool folded =
        info.is_view || info.family == Family::scalar || info.family == Family::prepack;
    if (folded) {
      if (const auto from = inside_.find(call.args.front()); from != inside_.end()) {
        inside_[out] = from->second;
      }
      if (info.family == Family::prepack) {
        packed_constants_[out] = call.args.front();
      }
      return;
    }
    Box box{.kind = Box::Kind::graph_call,
            .family = info.family,
            .title = std::string(short_op_name(call.name)),
            .same = call.name,
            .delegate = delegate_};
    Constants constants;
    for (size_t i = 0; i + 1 < call.args.size(); ++i) {
      use(call.args[i], 0, box, constants);
    }
    box.detail = detail(call, info.family, constants);
    const size_t index = add_box(std::move(box));
    produce(out, index);
  }

  struct Constants {
    std::vector<uint32_t> weights;
    std::vector<uint32_t> states;
  };

  void use(uint32_t id, int depth, Box& box, Constants& constants) {
    const pte::GraphValue& value = graph_->values[id];
    const auto* tensor = std::get_if<GraphTensor>(&value);
    if (const auto packed = packed_constants_.find(id); packed != packed_constants_.end()) {
      use(packed->second, depth, box, constants);
    } else if (tensor != nullptr && tensor->constant_id) {
      (tensor->mem_obj_id ? constants.states : constants.weights).push_back(id);
      box.same += fmt::format(" c{}{}", short_dtype(tensor->dtype), to_string(table_->tensors[id]));
    } else if (const auto* list = std::get_if<pte::ValueIdList>(&value); list && depth < 3) {
      for (const uint32_t item : list->ids) {
        use(item, depth + 1, box, constants);
      }
    } else if (const auto from = inside_.find(id); from != inside_.end()) {
      const bool integer = tensor == nullptr;
      const auto& symbol = table_->integers[id];
      if (integer && symbol && to_string(*symbol).find("pos") == std::string::npos) {
        return;  // sizes follow from the shapes on the arrows
      }
      std::string label = integer ? (symbol ? to_string(*symbol) : "")
                                  : labelled(short_dtype(tensor->dtype), table_->tensors[id]);
      box.same += fmt::format(" {}", label);
      box.arrows.push_back({.from = from->second, .label = std::move(label), .integer = integer});
    } else if (const auto* number = std::get_if<int64_t>(&value)) {
      box.same += fmt::format(" {}", *number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      box.same += fmt::format(" {}", *real);
    } else {
      box.same += fmt::format(" t{}", value.index());
    }
  }

  void produce(uint32_t out, size_t index) {
    if (const auto* list = std::get_if<pte::ValueIdList>(&graph_->values[out])) {
      for (const uint32_t item : list->ids) {
        inside_[item] = index;
      }
    } else {
      inside_[out] = index;
    }
  }

  uint64_t bytes_of(const std::vector<uint32_t>& ids) const {
    uint64_t total = 0;
    for (const uint32_t id : ids) {
      const auto& tensor = std::get<GraphTensor>(graph_->values[id]);
      const Result<uint64_t> bytes = pte::tensor_bytes(tensor.dtype, tensor.dims);
      total = add_saturated(total, bytes.ok() ? *bytes : 0);
    }
    return total;
  }

  std::string detail(const pte::OperatorCall& call, Family family,
                     const Constants& constants) const {
    const Shape& x = table_->tensors[call.args.front()];
    const Shape& y = table_->tensors[call.args.back()];
    if (!constants.states.empty()) {
      return fmt::format("cache {} x {}, {}", constants.states.size(),
                         to_string(table_->tensors[constants.states.front()]),
                         format_bytes(bytes_of(constants.states)));
    }
    if (constants.weights.empty()) {
      return "";
    }
    const std::string bytes = format_bytes(bytes_of(constants.weights));
    if (family == Family::linear && !x.empty() && !y.empty()) {
      return fmt::format("{} \u2192 {}, {}", x.back().size, y.back().size, bytes);
    }
    if (family == Family::embedding && !y.empty()) {
      const Shape& weight = table_->tensors[constants.weights.front()];
      return fmt::format("{} rows of {}, {}", weight.empty() ? 0 : weight.front().size,
                         y.back().size, bytes);
    }
    return fmt::format("{}, {}", to_string(table_->tensors[constants.weights.front()]), bytes);
  }

  const LoadedProgram& loaded_;
  size_t plan_index_;
  const pte::ExecutionPlan& plan_;
  std::vector<ShapeTable> tables_;
  Sketch sketch_;
  std::map<uint32_t, std::vector<size_t>> producers_;  // of plan values
  std::map<uint32_t, Shape> shapes_;                   // of plan values, as graphs name them

  // Of the delegate at hand.
  const Graph* graph_ = nullptr;
  const ShapeTable* table_ = nullptr;
  size_t delegate_ = 0;
  std::map<uint32_t, size_t> inside_;              // producers of graph values
  std::map<uint32_t, uint32_t> packed_constants_;  // prepack output -> its constant
};

}  // namespace

Sketch make_sketch(const LoadedProgram& loaded, size_t plan) {
  return Sketcher(loaded, plan).run();
}

}  // namespace ptero::inspect
