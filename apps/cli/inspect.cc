// SPDX-License-Identifier: BSD-3-Clause
// `ptero inspect`: what a .pte, .bpte or .ptd file holds. Needs no adapter.
#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "inspect/call_list.h"
#include "inspect/drawing.h"
#include "inspect/json.h"
#include "inspect/text.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"

namespace ptero::cli {
namespace {

struct InspectFlags {
  std::string file;
  std::vector<std::string> data;
  std::string graph;
  std::string extract;  // a folder
  bool json = false;
  bool ops = false;
};

std::string file_name(const std::string& path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

inspect::Capabilities capabilities() {
  inspect::Capabilities capabilities;
  for (const std::string_view name : ops::all_operators().names()) {
    capabilities.graph_operators.emplace_back(name);
  }
  for (const auto& [name, unused] : ops::host_operators()) {
    capabilities.host_operators.push_back(name);
  }
  return capabilities;
}

Status run(const InspectFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(const inspect::LoadedFile file,
                         inspect::load_file(flags.file, flags.data));
  PTERO_REJECT_IF(!file.program && (flags.ops || !flags.graph.empty()), invalid_argument,
                  "{} holds tensors and no program, so it has no calls to list or draw.",
                  flags.file);
  if (!flags.graph.empty()) {
    PTERO_ASSIGN_OR_RETURN(const std::string dot,
                           inspect::to_dot(*file.program, file_name(flags.file)));
    PTERO_RETURN_IF_ERROR(inspect::draw(dot, flags.graph));
  }
  if (!flags.extract.empty()) {
    PTERO_REJECT_IF(!file.program, invalid_argument, "{} holds no program.", flags.file);
    return extract_texts(file.program->program, flags.extract);
  }
  if (flags.json) {
    fmt::print("{}", inspect::to_json(inspect::make_report(file, capabilities())));
  } else if (flags.ops) {
    fmt::print("{}", inspect::to_call_list(*file.program));
  } else if (flags.graph.empty()) {
    fmt::print("{}", inspect::to_text(inspect::make_report(file, capabilities())));
  }
  return ok_status();
}

}  // namespace

void add_inspect(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Show what a .pte, .bpte or .ptd file holds and what of it would not run here");
  auto flags = std::make_shared<InspectFlags>();
  command->add_option("file", flags->file, "the file to look into")->required();
  command->add_option("--data", flags->data,
                      ".ptd file with weights that the program keeps outside of itself");
  CLI::Option* json = command->add_flag("--json", flags->json, "print JSON");
  command->add_flag("--ops", flags->ops, "print every call with its values")->excludes(json);
  command->add_option("--graph", flags->graph,
                      "draw the program into this .svg, .png or .pdf (needs Graphviz) or .dot");
  command
      ->add_option("--extract", flags->extract,
                   "write the tokenizer and the chat template inside into this folder")
      ->type_name("FOLDER");
  command->callback([flags, &outcome] {
    if (const Status status = run(*flags); !status.ok()) {
      outcome.status = report(status.error());
    }
  });
}

}  // namespace ptero::cli
