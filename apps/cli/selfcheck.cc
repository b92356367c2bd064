// SPDX-License-Identifier: BSD-3-Clause
// `ptero selfcheck`: does this GPU compute right? Small dispatches with known answers.
#include "gpu/selfcheck/selfcheck.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "gpu/native/wait.h"

namespace ptero::cli {
namespace {

Result<bool> run(const GpuFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, open_device(flags));
  fmt::print("adapter: {} ({})\n", device.adapter().name,
             gpu::adapter_type_name(device.adapter().type));
  PTERO_ASSIGN_OR_RETURN(const gpu::SelfCheckReport report, gpu::wait_for(gpu::self_check(device)));
  int passed = 0;
  int failed = 0;
  for (const gpu::CheckResult& check : report.checks) {
    const char* word = "not offered";
    if (check.outcome == gpu::CheckOutcome::passed) {
      word = "ok";
      ++passed;
    } else if (check.outcome == gpu::CheckOutcome::failed) {
      word = "FAILED";
      ++failed;
    }
    fmt::print("  {:<12} {:<28} {}\n", word, check.name, check.detail);
  }
  const gpu::DeviceStats& stats = device.stats();
  fmt::print("{} passed, {} failed; {} dispatches in {} passes, {} pipelines\n", passed, failed,
             stats.dispatches, stats.passes, stats.pipelines_created);
  return report.passed();
}

}  // namespace

void add_selfcheck(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("selfcheck", "Run small dispatches with known answers on an adapter");
  auto flags = std::make_shared<GpuFlags>();
  add_gpu_flags(*command, *flags);
  command->callback([flags, &outcome] {
    const Result<bool> passed = run(*flags);
    if (!passed.ok()) {
      outcome.status = report(passed.error());
    } else if (!*passed) {
      outcome.status = 1;
    }
  });
}

}  // namespace ptero::cli
