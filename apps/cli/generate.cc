// SPDX-License-Identifier: BSD-3-Clause
// `ptero generate`: one prompt, one answer. The answer alone goes to stdout.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/language_model.h"
#include "cli/memory.h"

namespace ptero::cli {
namespace {

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string prompt;
  std::string prompt_file;
  std::string system;
  std::string template_kwargs;
  std::string ids;  // instead of text: "1,9690,198"
  bool raw = false;
  bool print_ids = false;
  bool memory = false;
};

Result<std::string> prompt_text(const GenerateFlags& flags) {
  if (flags.prompt_file.empty()) {
    return flags.prompt;
  }
  if (flags.prompt_file == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
  }
  std::ifstream file(flags.prompt_file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  PTERO_REJECT_IF(!file, io, "Prompt file ({}) cannot be read.", flags.prompt_file);
  return text;
}

Result<std::vector<uint32_t>> prompt_tokens(const GenerateFlags& flags, const llm::Model& model) {
  if (!flags.ids.empty()) {
    std::vector<uint32_t> ids;
    for (const std::string& part : CLI::detail::split(flags.ids, ',')) {
      uint32_t id = 0;
      PTERO_REJECT_IF(!CLI::detail::lexical_cast(part, id), invalid_argument,
                      "Token id ({}) is not a number.", part);
      ids.push_back(id);
    }
    return ids;
  }
  PTERO_ASSIGN_OR_RETURN(const std::string text, prompt_text(flags));
  PTERO_REJECT_IF(text.empty(), invalid_argument,
                  "There is no prompt; give one with -p TEXT or -f FILE.");
  PTERO_REJECT_IF(!model.tokenizer(), unsupported,
                  "The model brings no tokenizer; give one with --tokenizer FILE.");
  if (flags.raw || !model.chat_template()) {
    return model.tokenizer()->encode(text);
  }
  std::vector<text::ChatMessage> messages;
  if (!flags.system.empty()) {
    messages.push_back({"system", flags.system});
  }
  messages.push_back({"user", text});
  return chat_tokens(model, messages, flags.template_kwargs);
}

Status generate(const GenerateFlags& flags) {
  catch_interrupts();
  PTERO_ASSIGN_OR_RETURN(llm::GenerationOptions options, generation_options(flags.sampling));
  PTERO_ASSIGN_OR_RETURN(const auto model, load_model(flags.model));
  PTERO_ASSIGN_OR_RETURN(std::vector<uint32_t> tokens, prompt_tokens(flags, *model));
  PTERO_ASSIGN_OR_RETURN(const auto session,
                         open_session(flags.model, model, tokens.size(), options.sampling));
  bool wrote = true;
  options.on_prompt = [](size_t, size_t) { return !interrupted(); };
  options.on_token = [&](const llm::TokenEvent& event) {
    if (flags.print_ids || !model->tokenizer()) {
      fmt::print("{}\n", event.id);
    } else {
      std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    }
    // A pipe that the other side has closed ends it.
    wrote = std::fflush(stdout) == 0;
    return wrote && !interrupted();
  };
  PTERO_ASSIGN_OR_RETURN(const auto generation,
                         llm::Generation::start(*session, std::move(tokens), std::move(options)));
  PTERO_ASSIGN_OR_RETURN(const llm::GenerationResult result, finish_answer(*generation));
  if (wrote && !flags.print_ids && !result.text.ends_with('\n')) {
    fmt::print("\n");
  }
  std::fflush(stdout);  // before what goes to stderr, where both are one terminal
  fmt::print(stderr, "{}\n", closing_line(result));
  if (flags.memory) {
    fmt::print(stderr, "{}", memory_table(session->method().memory()));
  }
  PTERO_REJECT_IF(result.reason == llm::FinishReason::cancelled && wrote, cancelled,
                  "Interrupted.");
  return ok_status();
}

}  // namespace

void add_generate(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("generate", "Answer one prompt: the answer on stdout, the rest on stderr");
  auto flags = std::make_shared<GenerateFlags>();
  add_model_flags(*command, flags->model);
  add_context_flag(*command, flags->model);
  add_warm_up_flag(*command, flags->model);
  command->add_option("-p,--prompt", flags->prompt, "the prompt")->type_name("TEXT");
  command->add_option("-f,--file", flags->prompt_file, "read the prompt from a file; - is stdin")
      ->type_name("FILE");
  command->add_option("--ids", flags->ids, "the prompt as token ids, such as 1,9690,198");
  command->add_option("--system-prompt", flags->system, "what the model is told before")
      ->type_name("TEXT");
  command
      ->add_option("--chat-template-kwargs", flags->template_kwargs,
                   "variables of the chat template, such as {\"enable_thinking\": false}")
      ->type_name("JSON");
  command->add_flag("--raw", flags->raw, "give the prompt as it is, without the chat template");
  command->add_flag("--print-ids", flags->print_ids, "print token ids instead of text");
  command->add_flag("--memory", flags->memory, "show what the device's memory was used for");
  add_sampling_flags(*command, flags->sampling);
  command->callback([flags, &outcome] {
    if (const Status status = generate(*flags); !status.ok()) {
      outcome.status = report(status.error());
    }
  });
}

}  // namespace ptero::cli
