// SPDX-License-Identifier: BSD-3-Clause
#include "inspect/text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspect/printable.h"

namespace ptero::inspect {
namespace {

std::string plural(uint64_t n, std::string_view one, std::string_view many = {}) {
  return n == 1 ? fmt::format("1 {}", one)
                : fmt::format("{} {}{}", n, many.empty() ? one : many, many.empty() ? "s" : "");
}

// Columns as wide as their widest cell; numbers to the right.
class Table {
 public:
  explicit Table(std::string indent) : indent_(std::move(indent)) {}

  // A cell that starts with '>' is set to the right.
  void add(std::vector<std::string> cells) {
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      widths_[i] = std::max(widths_[i], cells[i].size() - (is_right(cells[i]) ? 1 : 0));
    }
    rows_.push_back(std::move(cells));
  }

  std::string text() const {
    std::string out;
    for (const auto& row : rows_) {
      std::string line = indent_;
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string_view cell = std::string_view(row[i]).substr(is_right(row[i]) ? 1 : 0);
        line += i == 0 ? "" : "  ";
        line += is_right(row[i]) ? fmt::format("{:>{}}", cell, widths_[i])
                                 : fmt::format("{:<{}}", cell, widths_[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  static bool is_right(std::string_view cell) { return cell.starts_with('>'); }

  std::string indent_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

struct ConstantText {
  const ValueReport& report;
  std::string operator()(const pte::Null&) const { return "none"; }
  std::string operator()(int64_t x) const { return fmt::format("{}", x); }
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  std::string operator()(double x) const { return fmt::format("{}", x); }
  std::string operator()(const std::string& x) const { return fmt::format("\"{}\"", printable(x)); }
  std::string operator()(const pte::IntIdList&) const {
    return fmt::format("[{}]", fmt::join(report.int_items, ", "));
  }
  std::string operator()(const pte::DoubleList& x) const {
    return fmt::format("[{}]", fmt::join(x.items, ", "));
  }
  std::string operator()(const pte::BoolList& x) const {
    return fmt::format("[{}]", fmt::join(x.items, ", "));
  }
  template <typename T>
  std::string operator()(const T&) const {
    return report.kind;
  }
};

std::string value_text(const ValueReport& value) {
  if (value.tensor) {
    return format_tensor(*value.tensor);
  }
  return value.constant ? std::visit(ConstantText{value}, *value.constant) : value.kind;
}

std::string values_text(const std::vector<ValueReport>& values) {
  std::vector<std::string> parts;
  for (const ValueReport& value : values) {
    parts.push_back(value_text(value));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string operators_text(const std::vector<OpCount>& operators, const std::string& indent) {
  Table table(indent);
  for (const OpCount& op : operators) {
    const std::string_view family = family_info(op.family).name;
    table.add({fmt::format(">{}", op.count), printable(op.name), std::string(family)});
  }
  return table.text();
}

std::string graph_text(const GraphReport& graph) {
  std::string out =
      fmt::format("  {} on {}, about {} without fusion\n", plural(graph.calls, "call"),
                  plural(graph.values, "value"),
                  plural(graph.dispatches, "GPU dispatch a run", "GPU dispatches a run"));
  out += "  Operators\n" + operators_text(graph.operators, "    ");

  const ConstantsReport& constants = graph.constants;
  if (constants.tensors > 0) {
    out +=
        fmt::format("  Constants: {} in {}, {}\n", plural(constants.tensors, "tensor"),
                    plural(constants.entries, "entry", "entries"), format_bytes(constants.bytes));
    Table table("    ");
    for (const auto& [dtype, count] : constants.by_dtype) {
      table.add({dtype, fmt::format(">{}", plural(count.tensors, "entry", "entries")),
                 fmt::format(">{}", format_bytes(count.bytes))});
    }
    out += table.text();
  }

  const MemoryReport& memory = graph.memory;
  out += "  Memory at the largest shapes\n";
  Table table("    ");
  if (memory.objects > 0) {
    table.add({"shared", fmt::format(">{}", plural(memory.objects, "object")),
               fmt::format(">{}", format_bytes(memory.object_bytes)),
               fmt::format("for {} of together {}", plural(memory.object_tensors, "tensor"),
                           format_bytes(memory.unshared_bytes))});
  }
  if (memory.dedicated_tensors > 0) {
    table.add({"dedicated", fmt::format(">{}", plural(memory.dedicated_tensors, "tensor")),
               fmt::format(">{}", format_bytes(memory.dedicated_bytes))});
  }
  if (memory.state_tensors > 0) {
    table.add({"state", fmt::format(">{}", plural(memory.state_tensors, "tensor")),
               fmt::format(">{}", format_bytes(memory.state_bytes)),
               "kept from run to run (KV caches)"});
  }
  return out + table.text();
}

std::string delegate_text(const MethodReport& method, size_t index) {
  const DelegateReport& delegate = method.delegates[index];
  std::string out = fmt::format("\nDelegate {} of {}: {}, {}", index, printable(method.name),
                                printable(delegate.backend), format_bytes(delegate.bytes));
  for (const auto& [key, value] : delegate.compile_specs) {
    out += fmt::format(", {}={}", printable(key), value);
  }
  out += "\n";
  return delegate.graph ? out + graph_text(*delegate.graph) : out;
}

std::string method_text(const MethodReport& method) {
  std::string out =
      fmt::format("  {}({}) -> {}\n", printable(method.name), values_text(method.inputs),
                  method.outputs.empty() ? "nothing" : values_text(method.outputs));
  uint64_t host_calls = 0;
  for (const OpCount& op : method.host_operators) {
    host_calls += op.count;
  }
  out += fmt::format("    {}, {} outside of delegates, {} planned there\n",
                     plural(method.delegate_calls, "delegate call"),
                     host_calls == 0 ? "no operators" : plural(host_calls, "operator call"),
                     format_bytes(method.planned_bytes));
  for (const OpCount& op : method.host_operators) {
    out += fmt::format("    {:>4}  {}\n", op.count, printable(op.name));
  }
  return out;
}

std::string header_text(const Report& report) {
  const std::string_view what = report.format == "ptd"    ? "ExecuTorch data file"
                                : report.format == "bpte" ? "ExecuTorch program with test cases"
                                                          : "ExecuTorch program";
  std::string out = fmt::format("{}: {}, {}\n", report.path, what, format_bytes(report.bytes));
  out += fmt::format("  {} ({}), {}", plural(report.segments, "segment"),
                     format_bytes(report.segment_bytes),
                     plural(report.named_data, "named entry", "named entries"));
  if (report.format != "ptd") {
    out += fmt::format(", {} outside of segments", format_bytes(report.layout.flatbuffer_size));
  }
  return out + "\n";
}

std::string bundled_text(const Report& report) {
  std::string out = "\nTest cases\n";
  for (const BundledMethodReport& method : report.bundled) {
    out += fmt::format("  {}: {}, {} of tensors\n", printable(method.name),
                       plural(method.cases, "case"), format_bytes(method.bytes));
  }
  return out;
}

std::string entries_text(const Report& report) {
  Table table("  ");
  for (const DataEntryReport& entry : report.entries) {
    table.add({printable(entry.key), fmt::format(">{}", format_bytes(entry.bytes)),
               entry.tensor ? format_tensor(*entry.tensor) : "bytes"});
  }
  return "\nEntries\n" + table.text();
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) {
    return plural(bytes, "byte");
  }
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string format_tensor(const TensorReport& tensor) {
  if (tensor.dynamism == pte::ShapeDynamism::unbounded) {
    const std::vector<std::string> unknown(tensor.shape.size(), "?");
    return fmt::format("{} [{}]", tensor.dtype, fmt::join(unknown, ", "));
  }
  return tensor.dtype == "symint" ? tensor.dtype
                                  : fmt::format("{} {}", tensor.dtype, to_string(tensor.shape));
}

std::string to_text(const Report& report) {
  std::string out = header_text(report);
  if (report.format == "ptd") {
    return out + entries_text(report);
  }
  if (!report.bundled.empty()) {
    out += bundled_text(report);
  }
  out += "\nMethods\n";
  Table metadata("  ");
  size_t constants = 0;
  for (const MethodReport& method : report.methods) {
    if (method.constant) {
      metadata.add({printable(method.name), values_text(method.outputs)});
      ++constants;
    } else {
      out += method_text(method);
    }
  }
  if (constants > 0) {
    out += "\nMetadata methods\n" + metadata.text();
  }
  if (report.host_constants.tensors > 0) {
    out += fmt::format("\nConstants outside of delegates: {}, {}\n",
                       plural(report.host_constants.tensors, "tensor"),
                       format_bytes(report.host_constants.bytes));
  }
  for (const MethodReport& method : report.methods) {
    for (size_t i = 0; i < method.delegates.size(); ++i) {
      out += delegate_text(method, i);
    }
  }
  out += report.obstacles.empty() ? "\nThis build runs every operator of the program.\n"
                                  : "\nWhat would not run here\n";
  for (const std::string& obstacle : report.obstacles) {
    out += fmt::format("  - {}\n", obstacle);
  }
  return out;
}

}  // namespace ptero::inspect
