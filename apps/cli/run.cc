// SPDX-License-Identifier: BSD-3-Clause
// `ptero run MODEL`: one method on given inputs.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "base/process_memory.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/memory.h"
#include "cli/program_file.h"
#include "cli/tensor_file.h"

namespace ptero::cli {
namespace {

struct RunFlags {
  std::string model;
  std::string method = "forward";
  std::vector<std::string> data;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> expected;
  Tolerance tolerance;
  int repeat = 1;
  bool memory = false;
  bool memory_json = false;
  GpuFlags gpu;
};

// "float32 [1, 512]: 0.1234, -1.5, ..., 2.25"
std::string summary(const graph::HostTensor& tensor) {
  constexpr size_t kShown = 8;
  const size_t count = tensor.shape.numel();
  std::string text =
      fmt::format("{} {}:", pte::name_of(tensor.type), graph::to_string(tensor.shape));
  for (size_t i = 0; i < std::min(count, kShown); ++i) {
    text += fmt::format(" {}", element_text(tensor, i));
  }
  return count > kShown ? text + " ..." : text;
}

// True when every expectation was met.
Result<bool> run(const RunFlags& flags) {
  PTERO_REJECT_IF(flags.repeat < 1, invalid_argument, "--repeat ({}) is not above 0.",
                  flags.repeat);
  std::vector<graph::HostTensor> inputs;
  for (const std::string& argument : flags.inputs) {
    PTERO_ASSIGN_OR_RETURN(graph::HostTensor tensor, read_tensor_argument(argument));
    inputs.push_back(std::move(tensor));
  }
  std::vector<graph::HostTensor> expected;
  for (const std::string& argument : flags.expected) {
    PTERO_ASSIGN_OR_RETURN(graph::HostTensor tensor, read_tensor_argument(argument));
    expected.push_back(std::move(tensor));
  }
  PTERO_ASSIGN_OR_RETURN(const auto file, open_program(flags.model, flags.data));
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, open_device(flags.gpu));
  PTERO_ASSIGN_OR_RETURN(graph::PlanOptions options, plan_options(flags.gpu, device));
  PTERO_ASSIGN_OR_RETURN(const auto method,
                         load_method(device, *file, flags.method, std::move(options)));
  PTERO_ASSIGN_OR_RETURN(const auto session, graph::MethodSession::create(method));

  std::vector<graph::HostTensor> outputs;
  std::vector<double> times;
  for (int i = 0; i < flags.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    PTERO_ASSIGN_OR_RETURN(outputs, run_method(*session, inputs));
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
  }
  PTERO_REJECT_IF(flags.outputs.size() > outputs.size() || expected.size() > outputs.size(),
                  invalid_argument, "Method ({}) gives {} outputs, fewer than were named.",
                  flags.method, outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    fmt::print("output {}: {}\n", i, summary(outputs[i]));
    if (i < expected.size()) {
      fmt::print("expected: {}\n", summary(expected[i]));
    }
  }
  for (size_t i = 0; i < flags.outputs.size(); ++i) {
    PTERO_RETURN_IF_ERROR(write_npy(flags.outputs[i], outputs[i]));
  }
  std::sort(times.begin(), times.end());
  fmt::print("{} dispatches on {}; {} run{}, median {:.2f} ms\n", session->last_dispatches(),
             device.adapter().name, times.size(), times.size() == 1 ? "" : "s",
             times[times.size() / 2]);
  fmt::print("memory at most: {:.1f} MiB on the device, {:.1f} MiB of the process\n",
             mebibytes(device.stats().bytes_peak), mebibytes(peak_host_bytes().value_or(0)));
  if (flags.memory) {
    fmt::print("{}", memory_table(session->memory()));
  }
  if (flags.memory_json) {
    fmt::print("{}\n", to_json(session->memory()).dump());
  }
  bool met = true;
  for (size_t i = 0; i < expected.size(); ++i) {
    const Result<Comparison> compared = compare(outputs[i], expected[i], flags.tolerance);
    const std::string why = compared.ok() ? compared->difference : compared.error().to_string();
    if (why.empty()) {
      fmt::print("output {} is as expected; largest error {:.1e}\n", i, compared->largest_error);
    } else {
      fmt::print("output {} is not as expected: {}\n", i, why);
      met = false;
    }
  }
  return met;
}

}  // namespace

void add_run(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("run", "Run a method of a .pte file");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("model", flags->model, "the .pte file")->required()->type_name("MODEL");
  command
      ->add_option("--input", flags->inputs,
                   "an input, in the method's order: FILE.npy, or FILE:TYPE:SHAPE for raw "
                   "little-endian bytes, such as x.bin:f32:1x5")
      ->type_name("TENSOR");
  command->add_option("--output", flags->outputs, "write an output, in order")
      ->type_name("FILE.npy");
  command->add_option("--expect", flags->expected, "compare an output, in order")
      ->type_name("TENSOR");
  command->add_option("--atol", flags->tolerance.atol, "absolute error that passes")
      ->capture_default_str();
  command->add_option("--rtol", flags->tolerance.rtol, "relative error that passes")
      ->capture_default_str();
  command->add_option("--method", flags->method, "method to run")->capture_default_str();
  command->add_option("--data", flags->data, "a .ptd file with external tensors")
      ->type_name("FILE.ptd");
  command
      ->add_option("--repeat", flags->repeat,
                   "run this often, with the state that the runs leave in caches")
      ->capture_default_str();
  command->add_flag("--memory", flags->memory, "show what the device's memory is used for");
  command->add_flag("--memory-json", flags->memory_json, "the same as a line of JSON, in bytes");
  add_gpu_flags(*command, flags->gpu);
  add_plan_flags(*command, flags->gpu);
  command->callback([flags, &outcome] {
    const Result<bool> met = run(*flags);
    if (!met.ok()) {
      outcome.status = report(met.error());
    } else if (!*met) {
      outcome.status = 1;
    }
  });
}

}  // namespace ptero::cli
