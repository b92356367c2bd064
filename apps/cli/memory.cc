// SPDX-License-Identifier: BSD-3-Clause
#include "cli/memory.h"

#include <fmt/format.h>

#include "base/units.h"

namespace ptero::cli {
namespace {

std::string_view kind_name(size_t kind) {
  return gpu::memory_kind_name(static_cast<gpu::MemoryKind>(kind));
}

}  // namespace

std::string memory_table(const graph::MemoryReport& report) {
  std::string text =
      fmt::format("{:<16}{:>12}{:>12}{:>12}\n", "device MiB", "planned", "allocated", "at most");
  const auto line = [&](std::string_view name, uint64_t planned, uint64_t allocated,
                        uint64_t peak) {
    text += fmt::format("  {:<14}{:>12.2f}{:>12.2f}{:>12.2f}\n", name, mebibytes(planned),
                        mebibytes(allocated), mebibytes(peak));
  };
  for (size_t kind = 0; kind < gpu::kMemoryKindCount; ++kind) {
    line(kind_name(kind), report.planned[kind], report.allocated[kind], report.peak[kind]);
  }
  line("all", graph::sum(report.planned), graph::sum(report.allocated), report.peak_of_all);
  return text;
}

std::string planned_table(const graph::BytesByKind& planned) {
  std::string text = fmt::format("{:<16}{:>12}\n", "device MiB", "planned");
  for (size_t kind = 0; kind < gpu::kMemoryKindCount; ++kind) {
    text += fmt::format("  {:<14}{:>12.2f}\n", kind_name(kind), mebibytes(planned[kind]));
  }
  return text + fmt::format("  {:<14}{:>12.2f}\n", "all", mebibytes(graph::sum(planned)));
}

nlohmann::ordered_json to_json(const graph::MemoryReport& report) {
  nlohmann::ordered_json json;
  const auto entry = [](uint64_t planned, uint64_t allocated, uint64_t peak) {
    return nlohmann::ordered_json{{"planned", planned}, {"allocated", allocated}, {"peak", peak}};
  };
  for (size_t kind = 0; kind < gpu::kMemoryKindCount; ++kind) {
    json[std::string(kind_name(kind))] =
        entry(report.planned[kind], report.allocated[kind], report.peak[kind]);
  }
  json["total"] =
      entry(graph::sum(report.planned), graph::sum(report.allocated), report.peak_of_all);
  return json;
}

nlohmann::ordered_json to_json(const graph::BytesByKind& planned) {
  nlohmann::ordered_json json;
  for (size_t kind = 0; kind < gpu::kMemoryKindCount; ++kind) {
    json[std::string(kind_name(kind))] = planned[kind];
  }
  json["total"] = graph::sum(planned);
  return json;
}

}  // namespace ptero::cli
