// SPDX-License-Identifier: BSD-3-Clause
// `ptero cache`: the programs that are kept of GGUF files.
#include <chrono>
#include <cstdio>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/units.h"
#include "cli/cli.h"
#include "cli/gguf_model.h"

namespace ptero::cli {
namespace {

std::string in_mebibytes(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", mebibytes(bytes));
}

Result<convert::ProgramCache> cache_of(const CacheFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(std::optional<convert::ProgramCache> cache, open_cache(flags));
  PTERO_REJECT_IF(!cache, invalid_argument, "With --cache none there is no cache.");
  return *std::move(cache);
}

Status list(const CacheFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(const convert::ProgramCache cache, cache_of(flags));
  PTERO_ASSIGN_OR_RETURN(const std::vector<convert::CachedProgram> programs, cache.list());
  uint64_t bytes = 0;
  for (const convert::CachedProgram& program : programs) {
    bytes += program.bytes;
    fmt::print("{:%Y-%m-%d %H:%M} {:>12}  {}\n",
               fmt::localtime(std::chrono::system_clock::to_time_t(program.used)),
               in_mebibytes(program.bytes), program.source);
  }
  fmt::print("{}: {} program{}, {} of at most {}\n", cache.folder(), programs.size(),
             programs.size() == 1 ? "" : "s", in_mebibytes(bytes), in_mebibytes(cache.limit()));
  return ok_status();
}

Status clear(const CacheFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(const convert::ProgramCache cache, cache_of(flags));
  PTERO_ASSIGN_OR_RETURN(const uint64_t bytes, cache.clear());
  fmt::print("{}: {} freed\n", cache.folder(), in_mebibytes(bytes));
  return ok_status();
}

}  // namespace

void add_cache(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("cache", "The programs that are kept of GGUF files, converted");
  command->require_subcommand(1);
  auto flags = std::make_shared<CacheFlags>();
  const auto add = [&](const char* name, const char* help, Status (*body)(const CacheFlags&)) {
    CLI::App* sub = command->add_subcommand(name, help);
    add_cache_flags(*sub, *flags);
    sub->callback([flags, &outcome, body] {
      if (const Status status = body(*flags); !status.ok()) {
        outcome.status = report(status.error());
      }
    });
  };
  add("list", "Which there are, the last used first", list);
  add("clear", "Take all of them away", clear);
}

}  // namespace ptero::cli
