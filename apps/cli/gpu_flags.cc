// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "gpu/native/wait.h"

namespace ptero::cli {

namespace {

// "submit:40:fail"
Result<std::shared_ptr<gpu::FaultPlan>> parse_fault(const std::string& text) {
  using Points = std::array<std::string_view, 4>;
  constexpr Points kPoints = {"buffer", "pipeline", "map", "submit"};
  const std::vector<std::string> parts = CLI::detail::split(text, ':');
  uint64_t nth = 0;
  const auto point = std::find(kPoints.begin(), kPoints.end(), parts[0]);
  PTERO_REJECT_IF(
      parts.size() != 3 || point == kPoints.end() || !CLI::detail::lexical_cast(parts[1], nth) ||
          nth == 0 || (parts[2] != "fail" && parts[2] != "lose"),
      invalid_argument, "--inject-fault ({}) is not of the form POINT:N:fail|lose.", text);
  auto plan = std::make_shared<gpu::FaultPlan>();
  plan->add(static_cast<gpu::FaultPoint>(point - kPoints.begin()), nth,
            parts[2] == "fail" ? gpu::FaultKind::fail : gpu::FaultKind::lose_device);
  return plan;
}

}  // namespace

void add_gpu_flags(CLI::App& command, GpuFlags& flags) {
  command
      .add_option("--adapter", flags.adapter,
                  "adapter to use: its number or a part of its name (see `ptero devices`), or "
                  "discrete, integrated, cpu")
      ->envname("PTERO_ADAPTER")
      ->type_name("WHICH");
  command
      .add_option("--disable", flags.disabled,
                  "features to leave off: shader-f16, subgroups, subgroup-matrix, packed-dot, "
                  "timestamps, immediates")
      ->envname("PTERO_DISABLE")
      ->type_name("LIST")
      ->delimiter(',');
  command
      .add_option("--max-binding", flags.max_binding,
                  "plan as if the adapter's bindings held no more than this many bytes")
      ->type_name("BYTES");
  command
      .add_option("--max-buffer", flags.max_buffer,
                  "refuse models as if the adapter's buffers held no more than this many bytes")
      ->type_name("BYTES");
  command
      .add_option("--inject-fault", flags.fault,
                  "POINT:N:KIND: the N-th buffer, pipeline, map or submit meets fail or lose")
      ->group("");  // for tests: not in the help
  command.add_flag("--no-robustness", flags.no_robustness,
                   "leave out the bounds checks that Dawn puts into shaders");
}

void add_plan_flags(CLI::App& command, GpuFlags& flags) {
  command
      .add_option("--option", flags.options,
                  "KEY=VALUE, any number of times:\n" + graph::plan_option_help())
      ->type_name("KEY=VALUE");
}

Result<gpu::FeatureSet> disabled_features(const GpuFlags& flags) {
  gpu::FeatureSet features;
  for (const std::string& name : flags.disabled) {
    PTERO_ASSIGN_OR_RETURN(const gpu::Feature feature, gpu::parse_feature(name),
                           "while reading --disable");
    features.insert(feature);
  }
  return features;
}

Result<graph::PlanOptions> plan_options(const GpuFlags& flags, const gpu::Device& device) {
  graph::PlanOptions options;
  graph::set_from_environment(options);
  for (const std::string& assignment : flags.options) {
    PTERO_RETURN_IF_ERROR(graph::set(options, assignment), "while reading --option");
  }
  for (const std::string& sentence : graph::unserved(options, device.features())) {
    stderr_log()(LogLevel::warning, sentence);
  }
  return options;
}

Result<gpu::Adapter> find_adapter(const GpuFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(const gpu::Instance instance, gpu::Instance::create(stderr_log()));
  PTERO_ASSIGN_OR_RETURN(const auto adapters, gpu::list_adapters(instance));
  return gpu::choose_adapter(adapters, flags.adapter);
}

Result<gpu::Device> open_device(const GpuFlags& flags) {
  gpu::DeviceOptions options;
  PTERO_ASSIGN_OR_RETURN(options.disabled, disabled_features(flags));
  options.robustness = !flags.no_robustness;
  options.caps.max_storage_binding_size = flags.max_binding;
  options.caps.max_buffer_size = flags.max_buffer;
  if (!flags.fault.empty()) {
    PTERO_ASSIGN_OR_RETURN(options.faults, parse_fault(flags.fault));
  }
  options.log = stderr_log();
  PTERO_ASSIGN_OR_RETURN(const gpu::Adapter adapter, find_adapter(flags));
  return gpu::wait_for(gpu::Device::open(adapter, std::move(options)));
}

int report(const Error& error) {
  fmt::print(stderr, "ptero: {}\n", error.message());
  for (const std::string& line : error.context()) {
    fmt::print(stderr, "  {}\n", line);
  }
  return error_code_info(error.code()).exit_status;
}

LogCallback stderr_log() {
  return [](LogLevel level, std::string_view sentence) {
    if (level == LogLevel::warning || level == LogLevel::error) {
      fmt::print(stderr, "ptero: {}\n", sentence);
    }
  };
}

}  // namespace ptero::cli
