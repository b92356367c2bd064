// SPDX-License-Identifier: BSD-3-Clause
// `ptero devices`: every adapter with its limits, features and the fast paths they allow, and the
// kernels that each gets.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "ops/common/adapter_routes.h"

namespace ptero::cli {
namespace {

using nlohmann::ordered_json;

std::string bytes(uint64_t count) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(count);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string subgroup_sizes(const gpu::AdapterInfo& info) {
  if (info.subgroup_max_size == 0) {
    return "not reported";
  }
  return info.subgroup_min_size == info.subgroup_max_size
             ? fmt::format("{}", info.subgroup_max_size)
             : fmt::format("{} to {}", info.subgroup_min_size, info.subgroup_max_size);
}

std::string matrix_shape(const gpu::MatrixShape& shape) {
  return fmt::format("{}x{}x{} {}->{}", shape.m, shape.n, shape.k,
                     gpu::matrix_type_name(shape.input), gpu::matrix_type_name(shape.result));
}

std::string feature_list(gpu::FeatureSet features) {
  std::string text;
  for (const gpu::Feature feature : features) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", gpu::feature_name(feature));
  }
  return text.empty() ? "none" : text;
}

// What planning would see of this adapter.
graph::DeviceFacts facts_of(const gpu::AdapterInfo& info, gpu::FeatureSet disabled) {
  graph::DeviceFacts facts;
  facts.limits = info.limits;
  facts.is_software = info.is_software();
  facts.subgroup_min_size = info.subgroup_min_size;
  facts.subgroup_max_size = info.subgroup_max_size;
  facts.matrix_shapes = info.matrix_shapes;
  for (const gpu::Feature feature : info.features) {
    if (!disabled.contains(feature)) {
      facts.features.insert(feature);
    }
  }
  return facts;
}

void print_text(const std::vector<gpu::Adapter>& adapters, size_t chosen,
                gpu::FeatureSet disabled) {
  for (size_t i = 0; i < adapters.size(); ++i) {
    const gpu::AdapterInfo& info = adapters[i].info();
    const gpu::Limits& limits = info.limits;
    fmt::print("{}{}: {}{}\n", i == 0 ? "" : "\n", i, info.name,
               i == chosen ? "  (used by default)" : "");
    const auto row = [](std::string_view name, const std::string& value) {
      fmt::print("   {:<18} {}\n", name, value);
    };
    row("type", fmt::format("{}{}", gpu::adapter_type_name(info.type),
                            info.is_software() ? ", a software adapter" : ""));
    row("driver",
        fmt::format("{} ({})", info.driver.empty() ? "not reported" : info.driver, info.backend));
    row("memory", fmt::format("buffers to {}, bindings to {}", bytes(limits.max_buffer_size),
                              bytes(limits.max_storage_binding_size)));
    row("workgroups",
        fmt::format("{} invocations, {} of storage, {} buffers, {} a dimension",
                    limits.max_invocations_per_workgroup, bytes(limits.max_workgroup_storage_size),
                    limits.max_storage_buffers_per_stage, limits.max_workgroups_per_dimension));
    row("subgroups of", subgroup_sizes(info));
    std::string shapes;
    for (const gpu::MatrixShape& shape : info.matrix_shapes) {
      shapes += fmt::format("{}{}", shapes.empty() ? "" : ", ", matrix_shape(shape));
    }
    row("matrix shapes", shapes.empty() ? "none" : shapes);
    row("features", feature_list(info.features));
    fmt::print("   fast paths\n");
    for (const gpu::FastPath& path : gpu::fast_paths(info, disabled)) {
      fmt::print("     {} {:<20} {}\n", path.allowed() ? "yes" : "no ", path.name,
                 path.allowed() ? std::string(path.purpose) : path.missing);
    }
    fmt::print("   kernels\n");
    const graph::DeviceFacts facts = facts_of(info, disabled);
    for (size_t work = 0; work < ops::kWorkCount; ++work) {
      const ops::AdapterRoute& route = ops::route_for(static_cast<ops::Work>(work), facts);
      fmt::print("     {:<30} {:<16} {}\n", ops::name_of(route.work), route.route, route.why);
    }
  }
  if (adapters[chosen].info().is_software()) {
    fmt::print(
        "\nOnly a software adapter is here: it runs WebGPU on the CPU. A CPU runtime, such as "
        "ExecuTorch with XNNPACK, would be faster.\n");
  }
}

ordered_json adapter_json(const gpu::AdapterInfo& info, gpu::FeatureSet disabled) {
  const gpu::Limits& limits = info.limits;
  ordered_json json = {{"name", info.name},
                       {"type", gpu::adapter_type_name(info.type)},
                       {"vendor", info.vendor},
                       {"driver", info.driver},
                       {"backend", info.backend},
                       {"vendor_id", info.vendor_id},
                       {"device_id", info.device_id},
                       {"subgroup_min_size", info.subgroup_min_size},
                       {"subgroup_max_size", info.subgroup_max_size},
                       {"limits",
                        {{"max_buffer_size", limits.max_buffer_size},
                         {"max_storage_binding_size", limits.max_storage_binding_size},
                         {"max_storage_buffers_per_stage", limits.max_storage_buffers_per_stage},
                         {"min_storage_offset_alignment", limits.min_storage_offset_alignment},
                         {"max_workgroup_storage_size", limits.max_workgroup_storage_size},
                         {"max_invocations_per_workgroup", limits.max_invocations_per_workgroup},
                         {"max_workgroups_per_dimension", limits.max_workgroups_per_dimension},
                         {"max_immediate_size", limits.max_immediate_size}}}};
  json["features"] = ordered_json::array();
  for (const gpu::Feature feature : info.features) {
    json["features"].push_back(gpu::feature_name(feature));
  }
  json["matrix_shapes"] = ordered_json::array();
  for (const gpu::MatrixShape& shape : info.matrix_shapes) {
    json["matrix_shapes"].push_back({{"m", shape.m},
                                     {"n", shape.n},
                                     {"k", shape.k},
                                     {"input", gpu::matrix_type_name(shape.input)},
                                     {"result", gpu::matrix_type_name(shape.result)}});
  }
  json["fast_paths"] = ordered_json::array();
  for (const gpu::FastPath& path : gpu::fast_paths(info, disabled)) {
    json["fast_paths"].push_back(
        {{"name", path.name}, {"allowed", path.allowed()}, {"missing", path.missing}});
  }
  json["routes"] = ordered_json::array();
  const graph::DeviceFacts facts = facts_of(info, disabled);
  for (size_t work = 0; work < ops::kWorkCount; ++work) {
    const ops::AdapterRoute& route = ops::route_for(static_cast<ops::Work>(work), facts);
    json["routes"].push_back(
        {{"work", ops::name_of(route.work)}, {"route", route.route}, {"why", route.why}});
  }
  return json;
}

Status run(const GpuFlags& flags, bool as_json) {
  PTERO_ASSIGN_OR_RETURN(const gpu::FeatureSet disabled, disabled_features(flags));
  PTERO_ASSIGN_OR_RETURN(const gpu::Instance instance, gpu::Instance::create(stderr_log()));
  PTERO_ASSIGN_OR_RETURN(const auto adapters, gpu::list_adapters(instance));
  PTERO_ASSIGN_OR_RETURN(const gpu::Adapter adapter, gpu::choose_adapter(adapters, flags.adapter));
  const auto same = [&](const gpu::Adapter& other) { return &other.info() == &adapter.info(); };
  const size_t chosen =
      static_cast<size_t>(std::find_if(adapters.begin(), adapters.end(), same) - adapters.begin());
  if (!as_json) {
    print_text(adapters, chosen, disabled);
    return ok_status();
  }
  ordered_json json = {{"default", chosen}, {"adapters", ordered_json::array()}};
  for (const gpu::Adapter& each : adapters) {
    json["adapters"].push_back(adapter_json(each.info(), disabled));
  }
  fmt::print("{}\n", json.dump(2, ' ', false, ordered_json::error_handler_t::replace));
  return ok_status();
}

}  // namespace

void add_devices(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand(
      "devices", "List the adapters of this machine and the fast paths that each allows");
  auto flags = std::make_shared<GpuFlags>();
  auto as_json = std::make_shared<bool>(false);
  add_gpu_flags(*command, *flags);
  command->add_flag("--json", *as_json, "print JSON");
  command->callback([flags, as_json, &outcome] {
    if (const Status status = run(*flags, *as_json); !status.ok()) {
      outcome.status = report(status.error());
    }
  });
}

}  // namespace ptero::cli
