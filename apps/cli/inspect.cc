// SPDX-License-Identifier: BSD-3-Clause
// `ptero inspect`: what a .pte, .bpte or .ptd file holds. Needs no adapter.
#include <cstdio>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/memory.h"
#include "inspect/call_list.h"
#include "inspect/drawing.h"
#include "inspect/json.h"
#include "inspect/text.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"
#include "passes/passes.h"

namespace ptero::cli {
namespace {

struct InspectFlags {
  std::string file;
  std::vector<std::string> data;
  std::string graph;
  std::string extract;  // a folder
  bool json = false;
  bool ops = false;
  bool memory = false;
  std::vector<std::string> options;  // of planning, for --memory
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

// What each method plans to take of the device, on a usual GPU.
Status print_memory(const inspect::LoadedProgram& file, const InspectFlags& flags) {
  graph::PlanOptions options;
  graph::set_from_environment(options);
  for (const std::string& assignment : flags.options) {
    PTERO_RETURN_IF_ERROR(graph::set(options, assignment), "while reading --option");
  }
  const graph::DeviceFacts device = graph::usual_device(options);
  nlohmann::ordered_json methods = nlohmann::ordered_json::array();
  for (size_t i = 0; i < file.program.plans.size(); ++i) {
    const std::string& name = file.program.plans[i].name;
    graph::BytesByKind planned = {};
    if (file.delegates[i].empty()) {
      continue;  // a number about the model
    }
    for (const inspect::LoadedDelegate& delegate : file.delegates[i]) {
      PTERO_REJECT_IF(!delegate.graph, unsupported,
                      "Method ({}) has a delegate of another backend, whose memory is not known.",
                      name);
      PTERO_ASSIGN_OR_RETURN(const graph::BytesByKind bytes,
                             graph::planned_bytes(*delegate.graph, ops::all_operators(),
                                                  passes::standard_passes(), device),
                             "while planning method {}", name);
      planned = graph::together(planned, bytes);
    }
    if (!flags.json) {
      fmt::print("method {}, for one session and inputs of every size:\n{}", name,
                 planned_table(planned));
      continue;
    }
    methods.push_back({{"name", name}, {"planned", cli::to_json(planned)}});
  }
  if (flags.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"methods", std::move(methods)}}.dump(2));
  }
  return ok_status();
}

Status run(const InspectFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(const inspect::LoadedFile file,
                         inspect::load_file(flags.file, flags.data));
  PTERO_REJECT_IF(!file.program && (flags.ops || !flags.graph.empty()), invalid_argument,
                  "{} holds tensors and no program, so it has no calls to list or draw.",
                  flags.file);
  if (flags.memory) {
    PTERO_REJECT_IF(!file.program, invalid_argument,
                    "{} holds tensors and no program, so it plans no memory.", flags.file);
    return print_memory(*file.program, flags);
  }
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
  CLI::Option* memory =
      command
          ->add_flag("--memory", flags->memory,
                     "print how much device memory each method plans to take, on a usual GPU")
          ->excludes("--ops");
  command
      ->add_option("--option", flags->options,
                   "KEY=VALUE of planning, any number of times:\n" + graph::plan_option_help())
      ->type_name("KEY=VALUE")
      ->needs(memory);
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
