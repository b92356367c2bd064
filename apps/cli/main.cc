// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "cli/cli.h"

namespace {

using namespace ptero;

// One fact a line, so that a bug report can be copied from it.
int print_version() {
  fmt::print("ptero {}\n{}\n", PTERO_VERSION, gpu::Instance::implementation_version());
  const Result<gpu::Adapter> adapter = cli::find_adapter({});
  if (!adapter.ok()) {
    fmt::print("adapter: none ({})\n", adapter.error().message());
    return 0;
  }
  const gpu::AdapterInfo& info = adapter->info();
  fmt::print("adapter: {}, {}, {}\n", info.name, info.driver, info.backend);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app("Runs ExecuTorch programs on WebGPU.", "ptero");
  app.require_subcommand(0, 1);
  bool version = false;
  app.add_flag("--version", version, "print the versions of ptero, Dawn and the adapter");
  cli::Outcome outcome;
  cli::add_cache(app, outcome);
  cli::add_convert(app, outcome);
  cli::add_devices(app, outcome);
  cli::add_bench(app, outcome);
  cli::add_chat(app, outcome);
  cli::add_generate(app, outcome);
  cli::add_inspect(app, outcome);
  cli::add_operators(app, outcome);
  cli::add_pack(app, outcome);
  cli::add_run(app, outcome);
  cli::add_selfcheck(app, outcome);
  cli::add_verify(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "ptero: {} (ptero --help lists what there is)\n", error.what());
    return error_code_info(ErrorCode::invalid_argument).exit_status;
  }
  if (version) {
    return print_version();
  }
  if (app.get_subcommands().empty()) {
    fmt::print("{}", app.help());
  }
  return outcome.status;
}

// What is still buffered goes out now. A pipe whose reader went away is no failure; a full disk is.
int finish_output(int status) {
  const bool written = std::fflush(stdout) == 0;
  const int why = errno;
  if (written && std::ferror(stdout) == 0) {
    return status;
  }
  pollfd out = {STDOUT_FILENO, 0, 0};
  if (poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0) {
    return status;
  }
  fmt::print(stderr, "ptero: The output cannot be written{}.\n",
             written ? "" : fmt::format(" ({})", std::strerror(why)));
  return status != 0 ? status : error_code_info(ErrorCode::io).exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return finish_output(run(argc, argv));
  } catch (const std::system_error&) {  // fmt could not print
    return finish_output(error_code_info(ErrorCode::io).exit_status);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ptero: unexpected failure: {}\n", error.what());
    return error_code_info(ErrorCode::internal).exit_status;
  }
}
