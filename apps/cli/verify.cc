// SPDX-License-Identifier: BSD-3-Clause
// `ptero verify MANIFEST`: runs models and compares every output with what is expected.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/process_memory.h"
#include "cli/cli.h"
#include "cli/greedy.h"
#include "cli/manifest.h"
#include "cli/program_file.h"

namespace ptero::cli {
namespace {

struct VerifyFlags {
  std::string manifest;
  std::string filter;
  bool as_json = false;
  bool poison = false;
  bool reverse = false;
  GpuFlags gpu;
};

Result<std::vector<graph::HostTensor>> read_all(const std::vector<TensorEntry>& entries) {
  std::vector<graph::HostTensor> tensors;
  for (const TensorEntry& entry : entries) {
    PTERO_ASSIGN_OR_RETURN(graph::HostTensor tensor,
                           read_raw_tensor(entry.path, entry.type, entry.shape));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// A method gives the inputs that it changed before what the model's forward() returns.
void leave_out_changed_inputs(const pte::ExecutionPlan& plan, size_t expected,
                              std::vector<graph::HostTensor>& outputs) {
  for (size_t i = 0, at = 0; i < plan.outputs.size() && outputs.size() > expected; ++i) {
    if (std::find(plan.inputs.begin(), plan.inputs.end(), plan.outputs[i]) != plan.inputs.end()) {
      outputs.erase(outputs.begin() + static_cast<ptrdiff_t>(at));
    } else {
      ++at;
    }
  }
}

// Whether an output differs from what is expected.
Result<bool> verify_step(graph::MethodSession& session, const StepEntry& step,
                         const ModelEntry& model, bool may_differ, ModelOutcome& outcome) {
  PTERO_ASSIGN_OR_RETURN(std::vector<graph::HostTensor> inputs, read_all(step.inputs));
  PTERO_ASSIGN_OR_RETURN(const std::vector<graph::HostTensor> expected, read_all(step.outputs));
  PTERO_ASSIGN_OR_RETURN(std::vector<graph::HostTensor> outputs,
                         run_method(session, std::move(inputs)));
  leave_out_changed_inputs(session.model().plan(), expected.size(), outputs);
  PTERO_REJECT_IF(outputs.size() != expected.size(), invalid_argument,
                  "The method gives {} outputs and {} are expected.", outputs.size(),
                  expected.size());
  PTERO_REJECT_IF(session.last_dispatches() == 0 && !model.copies_only, invalid_argument,
                  "Nothing ran on the GPU: there were no dispatches.");
  bool differs = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    PTERO_ASSIGN_OR_RETURN(const Comparison compared,
                           compare(outputs[i], expected[i], model.tolerance), "in output {}", i);
    PTERO_REJECT_IF(compared.has_nan || (!compared.difference.empty() && !may_differ),
                    invalid_argument, "{} Output {}.",
                    compared.has_nan ? "There is a NaN." : compared.difference, i);
    differs = differs || !compared.difference.empty();
    if (!may_differ) {
      outcome.largest_error = std::max(outcome.largest_error, compared.largest_error);
    }
  }
  outcome.dispatches += session.last_dispatches();
  ++outcome.steps;
  return differs;
}

Result<ModelOutcome> verify_model(gpu::Device device, const ModelEntry& model,
                                  const graph::PlanOptions& options, bool poison) {
  ModelOutcome outcome;
  PTERO_ASSIGN_OR_RETURN(const auto file, open_program(model.pte, {}));
  PTERO_ASSIGN_OR_RETURN(const auto method, load_method(device, *file, "forward", options));
  if (!model.greedy.empty()) {
    return verify_greedy(method, model.greedy, poison);
  }
  PTERO_REJECT_IF(model.sequences.empty(), invalid_argument, "The manifest gives it no sequences.");
  for (const SequenceEntry& sequence : model.sequences) {
    PTERO_ASSIGN_OR_RETURN(const auto session,
                           graph::MethodSession::create(method, {.poison_activations = poison}));
    PTERO_REJECT_IF(sequence.steps.empty(), invalid_argument, "Sequence ({}) has no steps.",
                    sequence.name);
    bool differs = false;
    for (size_t i = 0; i < sequence.steps.size(); ++i) {
      PTERO_ASSIGN_OR_RETURN(
          const bool step_differs,
          verify_step(*session, sequence.steps[i], model, sequence.differs, outcome),
          "in step {} of sequence \"{}\"", i, sequence.name);
      differs = differs || step_differs;
    }
    PTERO_REJECT_IF(differs != sequence.differs, invalid_argument,
                    "Control ({}) gives what it should not: nothing differs.", sequence.name);
  }
  return outcome;
}

// True when every model passed.
Result<bool> run(const VerifyFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(std::vector<ModelEntry> models, read_manifest(flags.manifest));
  std::erase_if(models, [&](const ModelEntry& model) {
    return model.name.find(flags.filter) == std::string::npos;
  });
  PTERO_REJECT_IF(models.empty(), invalid_argument, "No model's name contains ({}).", flags.filter);
  if (flags.reverse) {
    std::reverse(models.begin(), models.end());
  }
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, open_device(flags.gpu));
  PTERO_ASSIGN_OR_RETURN(const graph::PlanOptions options, plan_options(flags.gpu, device));
  nlohmann::ordered_json report = {{"adapter", device.adapter().name},
                                   {"driver", device.adapter().driver},
                                   {"models", nlohmann::ordered_json::array()}};
  if (!flags.as_json) {
    fmt::print("adapter: {} ({})\n", device.adapter().name, device.adapter().driver);
  }
  size_t width = 0;
  for (const ModelEntry& model : models) {
    width = std::max(width, model.name.size());
  }
  size_t passed = 0;
  for (const ModelEntry& model : models) {
    const Result<ModelOutcome> outcome = verify_model(device, model, options, flags.poison);
    passed += outcome.ok() ? 1 : 0;
    if (flags.as_json) {
      nlohmann::ordered_json entry = {{"name", model.name}, {"passed", outcome.ok()}};
      if (outcome.ok()) {
        entry["largest_error"] = outcome->largest_error;
        entry["steps"] = outcome->steps;
        entry["dispatches"] = outcome->dispatches;
      } else {
        entry["error"] = outcome.error().to_string();
      }
      report["models"].push_back(std::move(entry));
    } else if (outcome.ok()) {
      fmt::print("ok      {:<{}}  largest error {:.1e}, {} steps, {} dispatches\n", model.name,
                 width, outcome->largest_error, outcome->steps, outcome->dispatches);
    } else {
      fmt::print("FAILED  {:<{}}  {}\n", model.name, width, outcome.error().to_string());
    }
    if (!outcome.ok() && outcome.error().code() == ErrorCode::device_lost) {
      return outcome.error();
    }
  }
  report["device_bytes_peak"] = device.stats().bytes_peak;
  report["host_bytes_peak"] = peak_host_bytes().value_or(0);
  report["passed"] = passed;
  report["failed"] = models.size() - passed;
  if (flags.as_json) {
    fmt::print("{}\n",
               report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    fmt::print("{} passed, {} failed\n", passed, models.size() - passed);
  }
  return passed == models.size();
}

}  // namespace

void add_verify(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand(
      "verify", "Run the models of a manifest and compare every output with what is expected");
  auto flags = std::make_shared<VerifyFlags>();
  command->add_option("manifest", flags->manifest, "manifest.json of a folder of test models")
      ->required()
      ->type_name("MANIFEST");
  command->add_option("--filter", flags->filter, "only models whose name contains this")
      ->type_name("PART");
  command->add_flag("--json", flags->as_json, "print JSON");
  command->add_flag("--poison", flags->poison,
                    "fill activations with NaN before each run, so that stale or unwritten parts "
                    "of an output show");
  command->add_flag("--reverse", flags->reverse, "run the models in the opposite order");
  add_gpu_flags(*command, flags->gpu);
  add_plan_flags(*command, flags->gpu);
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
