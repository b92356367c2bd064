// SPDX-License-Identifier: BSD-3-Clause
// `ptero operators`: what this build runs.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"

namespace ptero::cli {

void add_operators(CLI::App& app, Outcome&) {
  CLI::App* command = app.add_subcommand("operators", "List the operators that this build runs");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "print JSON");
  command->callback([as_json] {
    const std::vector<std::string_view> graph = ops::all_operators().names();
    std::vector<std::string_view> host;
    for (const auto& [name, op] : ops::host_operators()) {
      host.push_back(name);
    }
    std::sort(host.begin(), host.end());
    if (*as_json) {
      fmt::print("{}\n", nlohmann::ordered_json{{"graph", graph}, {"host", host}}.dump(2));
      return;
    }
    fmt::print("Inside delegates, on the GPU:\n");
    for (const std::string_view name : graph) {
      fmt::print("  {}\n", name);
    }
    fmt::print("Between delegates, on the host:\n");
    for (const std::string_view name : host) {
      fmt::print("  {}\n", name);
    }
  });
}

}  // namespace ptero::cli
