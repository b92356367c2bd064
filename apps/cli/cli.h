// SPDX-License-Identifier: BSD-3-Clause
// What the subcommands of `ptero` share. Each subcommand is one file with one add_...() function
// that declares its flags and hands back its exit status through Outcome.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/result.h"
#include "gpu/device.h"
#include "graph/plan_options.h"
#include "pte/program.h"

namespace ptero::cli {

// The exit status of the subcommand that ran.
struct Outcome {
  int status = 0;
};

// Flags of every subcommand that uses a GPU; each also has an environment variable.
struct GpuFlags {
  std::string adapter;                // --adapter, PTERO_ADAPTER
  std::vector<std::string> disabled;  // --disable, PTERO_DISABLE
  bool no_robustness = false;
  uint64_t max_binding = 0;          // --max-binding; 0: the adapter's
  uint64_t max_buffer = 0;           // --max-buffer; 0: the adapter's
  std::string fault;                 // --inject-fault, for tests
  std::vector<std::string> options;  // --option key=value
};
void add_gpu_flags(CLI::App& command, GpuFlags& flags);
// --option, for those that run a program.
void add_plan_flags(CLI::App& command, GpuFlags& flags);

// The off-switches as a set; an unknown name is an error that lists the names.
Result<gpu::FeatureSet> disabled_features(const GpuFlags& flags);

// What the --option flags ask of planning; an unknown key or value is an error that lists them.
// What this device cannot serve is said on stderr.
Result<graph::PlanOptions> plan_options(const GpuFlags& flags, const gpu::Device& device);

// Chooses the adapter and opens it. Warnings go to stderr.
Result<gpu::Adapter> find_adapter(const GpuFlags& flags);
Result<gpu::Device> open_device(const GpuFlags& flags);

// Writes "ptero: <sentence>" and the context to stderr; returns the exit status of its code.
int report(const Error& error);
LogCallback stderr_log();

void add_cache(CLI::App& app, Outcome& outcome);
void add_convert(CLI::App& app, Outcome& outcome);
void add_devices(CLI::App& app, Outcome& outcome);
void add_bench(CLI::App& app, Outcome& outcome);
void add_chat(CLI::App& app, Outcome& outcome);
void add_generate(CLI::App& app, Outcome& outcome);
void add_inspect(CLI::App& app, Outcome& outcome);
void add_operators(CLI::App& app, Outcome& outcome);
void add_pack(CLI::App& app, Outcome& outcome);
void add_run(CLI::App& app, Outcome& outcome);
void add_selfcheck(CLI::App& app, Outcome& outcome);
void add_verify(CLI::App& app, Outcome& outcome);

// Writes the tokenizer and the chat template that a program brings into a folder.
Status extract_texts(const pte::Program& program, const std::string& folder);

}  // namespace ptero::cli
