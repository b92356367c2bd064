// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/shapes.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked.h"
#include "inspect/op_table.h"

namespace ptero::inspect {
namespace {

using pte::Graph;
using pte::GraphTensor;
using pte::OperatorCall;
using pte::ValueIdList;

constexpr size_t kLongestName = 24;

class Tracer {
 public:
  Tracer(const Graph& graph, const std::vector<std::optional<Shape>>& inputs) : graph_(graph) {
    table_.tensors.resize(graph.values.size());
    table_.integers.resize(graph.values.size());
    for (size_t id = 0; id < graph.values.size(); ++id) {
      if (const auto* tensor = std::get_if<GraphTensor>(&graph.values[id])) {
        for (const uint32_t dim : tensor->dims) {
          table_.tensors[id].push_back({.size = dim});
        }
      } else if (const auto* number = std::get_if<int64_t>(&graph.values[id])) {
        table_.integers[id] = SymbolicInt{.constant = *number};
      }
    }
    for (size_t i = 0; i < std::min(inputs.size(), graph.inputs.size()); ++i) {
      Shape& shape = table_.tensors[graph.inputs[i]];
      if (inputs[i] && inputs[i]->size() == shape.size()) {
        shape = *inputs[i];
      }
    }
  }

  ShapeTable run() {
    // Sizes of inputs first: an input may be used before the call that reads its size.
    for (const OperatorCall& call : graph_.chain) {
      if (call.name == "sym_size.int" && is_input(call)) {
        read_size(call);
      }
    }
    for (const OperatorCall& call : graph_.chain) {
      if (!call.args.empty()) {
        trace(call);
      }
    }
    return std::move(table_);
  }

 private:
  bool is_input(const OperatorCall& call) const {
    return !call.args.empty() &&
           std::ranges::find(graph_.inputs, call.args[0]) != graph_.inputs.end();
  }

  const Shape* shape(const OperatorCall& call, size_t arg) const {
    const bool tensor = arg < call.args.size() &&
                        std::holds_alternative<GraphTensor>(graph_.values[call.args[arg]]);
    return tensor ? &table_.tensors[call.args[arg]] : nullptr;
  }
  std::optional<SymbolicInt> integer(const OperatorCall& call, size_t arg) const {
    return arg < call.args.size() ? table_.integers[call.args[arg]] : std::nullopt;
  }
  std::optional<size_t> axis(const OperatorCall& call, size_t arg, size_t rank) const {
    const std::optional<SymbolicInt> value = integer(call, arg);
    if (!value || !value->terms.empty()) {
      return std::nullopt;
    }
    const int64_t n = static_cast<int64_t>(rank);
    const int64_t i = value->constant < 0 ? value->constant + n : value->constant;
    return i >= 0 && i < n ? std::optional<size_t>(static_cast<size_t>(i)) : std::nullopt;
  }

  // Names the dimensions of an output where the rule gives as many as the file does. Bounds stay
  // the file's.
  void name_dims(uint32_t id, const Shape& from) {
    Shape& to = table_.tensors[id];
    if (from.size() != to.size()) {
      return;
    }
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i].symbol.empty()) {
        to[i].symbol = from[i].symbol;
        to[i].maybe = from[i].maybe;
      }
    }
  }

  static Dim dim_of(const SymbolicInt& value) {
    if (value.terms.empty()) {
      return {.size = static_cast<uint64_t>(value.constant)};
    }
    // Names are for people; a long one also guards against files that double it at every step.
    std::string name = to_string(value);
    return name.size() > kLongestName ? Dim{.maybe = true} : Dim{.symbol = std::move(name)};
  }
  static SymbolicInt integer_of(const Dim& dim) {
    if (dim.symbol.empty()) {
      return {.constant = static_cast<int64_t>(dim.size)};
    }
    const bool compound = dim.symbol.find_first_of("+-") != std::string::npos;
    return {.terms = {{compound ? fmt::format("({})", dim.symbol) : dim.symbol, 1}}};
  }

  void read_size(const OperatorCall& call) {
    if (call.args.size() != 3 || shape(call, 0) == nullptr) {
      return;
    }
    Shape& dims = table_.tensors[call.args[0]];
    const std::optional<size_t> i = axis(call, 1, dims.size());
    if (!i) {
      return;
    }
    if (dims[*i].symbol.empty()) {
      dims[*i].symbol = next_name();
      for (Dim& dim : dims) {
        dim.maybe = false;  // the exporter reads every size that changes
      }
    }
    table_.integers[call.args[2]] = integer_of(dims[*i]);
  }

  std::string next_name() {
    constexpr std::string_view kNames = "STUVWXYZ";
    const size_t i = names_++;
    return i < kNames.size() ? std::string(1, kNames[i]) : fmt::format("S{}", i);
  }

  void add(const OperatorCall& call, int64_t sign) {
    const std::optional<SymbolicInt> a = integer(call, 0);
    const std::optional<SymbolicInt> b = integer(call, 1);
    if (a && b && call.args.size() == 3) {
      table_.integers[call.args[2]] = sum(*a, *b, sign);
    }
  }

  static std::optional<SymbolicInt> sum(SymbolicInt a, const SymbolicInt& b, int64_t sign) {
    // Strangers' numbers: an overflow only loses the name.
    const auto add_to = [sign](int64_t& to, int64_t n) {
      constexpr int64_t kLimit = int64_t{1} << 60;
      if (std::max(to, n) > kLimit || std::min(to, n) < -kLimit) {
        return false;
      }
      to += sign * n;
      return true;
    };
    bool fits = add_to(a.constant, b.constant);
    for (const auto& [name, factor] : b.terms) {
      fits = fits && add_to(a.terms[name], factor);
    }
    std::erase_if(a.terms, [](const auto& term) { return term.second == 0; });
    return fits ? std::optional(std::move(a)) : std::nullopt;
  }

  void trace(const OperatorCall& call) {
    const std::string_view name = call.name;
    const uint32_t out = call.args.back();
    const Shape* x = shape(call, 0);
    if (name == "sym_size.int") {
      read_size(call);
    } else if (name == "et_vk.select_as_symint.default") {
      // An integer of the caller's data: a position.
      const std::string symbol = positions_ == 0 ? "pos" : fmt::format("pos{}", positions_);
      const auto [entry, added] = position_names_.try_emplace(call.args[0], symbol);
      positions_ += added ? 1 : 0;
      table_.integers[out] = SymbolicInt{.terms = {{entry->second, 1}}};
    } else if (name == "add" || name == "sub") {
      add(call, name == "add" ? 1 : -1);
    } else if (name == "aten.view_copy.default" || name == "aten.expand_copy.default") {
      view(call);
    } else if (name == "aten.slice_copy.Tensor") {
      slice(call, x);
    } else if (name == "aten.select_copy.int" && x != nullptr) {
      if (const auto i = axis(call, 1, x->size())) {
        Shape dims = *x;
        dims.erase(dims.begin() + static_cast<ptrdiff_t>(*i));
        name_dims(out, dims);
      }
    } else if (name.starts_with("aten.permute") && x != nullptr) {
      permute(call, *x);
    } else if (name == "et_vk.embedding_q4gsw.default" || name == "aten.embedding.default") {
      if (const Shape* ids = shape(call, name == "aten.embedding.default" ? 1 : 3)) {
        Shape dims = *ids;
        dims.push_back({});
        name_dims(out, dims);
      }
    } else if (op_info(name).family == Family::linear && x != nullptr && !x->empty()) {
      Shape dims = *x;
      dims.back() = {};
      name_dims(out, dims);
    } else if (const auto* outputs = std::get_if<ValueIdList>(&graph_.values[out])) {
      for (const uint32_t id : outputs->ids) {
        if (name == "torchao.choose_qparams_affine.default" && x != nullptr && !x->empty()) {
          name_dims(id, Shape(x->begin(), x->end() - 1));
        } else {
          same_shape(call, id);
        }
      }
    } else {
      broadcast(call, out);
    }
  }

  void view(const OperatorCall& call) {
    const auto* sizes =
        call.args.size() < 2 ? nullptr : std::get_if<ValueIdList>(&graph_.values[call.args[1]]);
    if (sizes == nullptr) {
      return;
    }
    Shape dims;
    for (const uint32_t id : sizes->ids) {
      const std::optional<SymbolicInt>& size = table_.integers[id];
      dims.push_back(size ? dim_of(*size) : Dim{.maybe = true});
    }
    name_dims(call.args.back(), dims);
  }

  void slice(const OperatorCall& call, const Shape* x) {
    const std::optional<size_t> i = x == nullptr ? std::nullopt : axis(call, 1, x->size());
    if (!i) {
      return;
    }
    Shape dims = *x;
    const std::optional<SymbolicInt> start = integer(call, 2);
    const std::optional<SymbolicInt> end = integer(call, 3);
    const bool symbolic =
        (start && !start->terms.empty()) || (end && !end->terms.empty()) || !start || !end;
    if (symbolic && start && end) {
      const std::optional<SymbolicInt> length = sum(*end, *start, -1);
      dims[*i] = length ? dim_of(*length) : Dim{.maybe = true};
    } else if (symbolic) {
      dims[*i] = {.maybe = true};
    }
    name_dims(call.args.back(), dims);
  }

  void permute(const OperatorCall& call, const Shape& x) {
    const auto* order =
        call.args.size() < 2 ? nullptr : std::get_if<pte::IntList>(&graph_.values[call.args[1]]);
    if (order == nullptr || order->items.size() != x.size()) {
      return;
    }
    Shape dims;
    for (int64_t i : order->items) {
      i += i < 0 ? static_cast<int64_t>(x.size()) : 0;
      if (i < 0 || i >= static_cast<int64_t>(x.size())) {
        return;
      }
      dims.push_back(x[static_cast<size_t>(i)]);
    }
    name_dims(call.args.back(), dims);
  }

  // For several outputs: one with the bounds of an input has its names.
  void same_shape(const OperatorCall& call, uint32_t out) {
    const Shape& to = table_.tensors[out];
    for (size_t arg = 0; arg + 1 < call.args.size(); ++arg) {
      const Shape* from = shape(call, arg);
      if (from != nullptr && std::ranges::equal(*from, to, {}, &Dim::size, &Dim::size)) {
        name_dims(out, *from);
        return;
      }
    }
  }

  // For elementwise operators and whatever else keeps dimensions in place: each dimension of the
  // output gets the name of an input's dimension at the same distance from the end and of the same
  // size.
  void broadcast(const OperatorCall& call, uint32_t out) {
    Shape& to = table_.tensors[out];
    for (size_t arg = 0; arg + 1 < call.args.size(); ++arg) {
      const Shape* from = shape(call, arg);
      if (from == nullptr || from->size() > to.size()) {
        continue;
      }
      const size_t skip = to.size() - from->size();
      for (size_t i = 0; i < from->size(); ++i) {
        Dim& dim = to[skip + i];
        if (dim.symbol.empty() && dim.size == (*from)[i].size) {
          dim.symbol = (*from)[i].symbol;
          dim.maybe = dim.maybe || (*from)[i].maybe;
        }
      }
    }
  }

  const Graph& graph_;
  ShapeTable table_;
  size_t names_ = 0;
  size_t positions_ = 0;
  std::map<uint32_t, std::string> position_names_;
};

}  // namespace

std::string to_string(const Shape& shape, bool with_bounds) {
  std::vector<std::string> dims;
  for (const Dim& dim : shape) {
    if (!dim.symbol.empty()) {
      dims.push_back(with_bounds ? fmt::format("{}<={}", dim.symbol, dim.size) : dim.symbol);
    } else {
      dims.push_back(fmt::format("{}{}", dim.maybe ? "<=" : "", dim.size));
    }
  }
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::string to_string(const SymbolicInt& value) {
  std::string text;
  const auto append = [&text](int64_t n, std::string_view what) {
    const bool unit = (n == 1 || n == -1) && !what.empty();
    text += n < 0 ? "-" : text.empty() ? "" : "+";
    text +=
        unit ? std::string(what)
             : fmt::format("{}{}", n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n),
                           what);
  };
  for (const auto& [name, factor] : value.terms) {
    append(factor, name);
  }
  if (value.constant != 0 || value.terms.empty()) {
    append(value.constant, "");
  }
  return text;
}

ShapeTable trace_shapes(const pte::Graph& graph, const std::vector<std::optional<Shape>>& inputs) {
  return Tracer(graph, inputs).run();
}

}  // namespace ptero::inspect
