// SPDX-License-Identifier: BSD-3-Clause
// `ptero chat`: a conversation at the terminal.
#include <cstdio>
#include <fstream>
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/file_output.h"
#include "cli/cli.h"
#include "cli/language_model.h"

namespace ptero::cli {
namespace {

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling;
  std::string system;
  std::string template_kwargs;
};

constexpr std::string_view kHelp =
    "  /reset        forget the conversation\n"
    "  /system TEXT  what the model is told before; forgets the conversation\n"
    "  /regenerate   answer the last message again\n"
    "  /save FILE    write the conversation as JSON\n"
    "  /quit         leave (as does the end of input)\n"
    "A line that ends in \\ goes on in the next one. Ctrl-C stops an answer.\n";

class Chat {
 public:
  Chat(const ChatFlags& flags, std::shared_ptr<const llm::Model> model,
       std::unique_ptr<llm::Session> session)
      : flags_(flags),
        model_(std::move(model)),
        session_(std::move(session)),
        system_(flags.system),
        shows_prompt_(isatty(STDIN_FILENO) != 0) {}

  Status run() {
    if (shows_prompt_) {
      fmt::print("Type a message, or /help.\n");
    }
    while (const std::optional<std::string> line = read_message()) {
      if (line->empty()) {
        continue;
      }
      if (line->front() == '/') {
        if (*line == "/quit" || *line == "/exit") {
          break;
        }
        if (const Status status = command(*line); !status.ok()) {
          report(status.error());
        }
        continue;
      }
      messages_.push_back({"user", *line});
      PTERO_RETURN_IF_ERROR(answer());
      if (std::ferror(stdout) != 0) {
        break;  // nobody reads the answers
      }
    }
    return ok_status();
  }

 private:
  // Nothing at the end of input. A Ctrl-C at an empty prompt leaves too.
  std::optional<std::string> read_message() {
    std::string message;
    while (true) {
      if (shows_prompt_) {
        fmt::print("{}", message.empty() ? "> " : ". ");
        std::fflush(stdout);
      }
      std::string line;
      if (!std::getline(std::cin, line)) {
        return message.empty() ? std::nullopt : std::optional(message);
      }
      if (!line.empty() && line.back() == '\\') {
        message += line.substr(0, line.size() - 1) + "\n";
        continue;
      }
      return message + line;
    }
  }

  Status command(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (name == "/help") {
      fmt::print("{}", kHelp);
    } else if (name == "/reset") {
      messages_.clear();
    } else if (name == "/system") {
      system_ = rest;
      messages_.clear();
    } else if (name == "/regenerate") {
      if (!messages_.empty() && messages_.back().role == "assistant") {
        messages_.pop_back();
      }
      PTERO_REJECT_IF(messages_.empty(), invalid_argument, "There is no message to answer again.");
      ++answers_;  // another seed, or it would be the same answer
      return answer();
    } else if (name == "/save") {
      PTERO_REJECT_IF(rest.empty(), invalid_argument, "/save needs the name of a file.");
      return save(rest);
    } else {
      return make_error(ErrorCode::invalid_argument, "There is no command {}; /help lists them.",
                        name);
    }
    return ok_status();
  }

  Status save(const std::string& path) const {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    for (const text::ChatMessage& message : with_system()) {
      messages.push_back({{"role", message.role}, {"content", message.content}});
    }
    const std::string text =
        messages.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    PTERO_RETURN_IF_ERROR(write_file(path, *borrow_bytes(std::as_bytes(std::span(text)))));
    fmt::print("saved {} messages to {}\n", messages.size(), path);
    return ok_status();
  }

  std::vector<text::ChatMessage> with_system() const {
    std::vector<text::ChatMessage> all;
    if (!system_.empty()) {
      all.push_back({"system", system_});
    }
    all.insert(all.end(), messages_.begin(), messages_.end());
    return all;
  }

  Result<std::vector<uint32_t>> tokens() const {
    return chat_tokens(*model_, with_system(), flags_.template_kwargs);
  }

  Status answer() {
    PTERO_ASSIGN_OR_RETURN(std::vector<uint32_t> history, tokens());
    PTERO_ASSIGN_OR_RETURN(llm::GenerationOptions options, generation_options(flags_.sampling));
    options.sampling.seed += answers_++;
    options.on_prompt = [](size_t, size_t) { return !interrupted(); };
    options.on_token = [](const llm::TokenEvent& event) {
      std::fwrite(event.text.data(), 1, event.text.size(), stdout);
      return std::fflush(stdout) == 0 && !interrupted();
    };
    clear_interrupt();
    auto generation = llm::Generation::start(*session_, std::move(history), std::move(options));
    if (!generation.ok()) {
      // A conversation that outgrew the context can be reset; the program goes on.
      messages_.pop_back();
      report(generation.error());
      return ok_status();
    }
    const Result<llm::GenerationResult> finished = finish_answer(**generation);
    clear_interrupt();
    if (!finished.ok()) {
      return finished.error();
    }
    const llm::GenerationResult& result = *finished;
    fmt::print("\n");
    std::fflush(stdout);
    fmt::print(stderr, "[{}]\n", closing_line(result));
    messages_.push_back({"assistant", result.text});
    return ok_status();
  }

  const ChatFlags& flags_;
  std::shared_ptr<const llm::Model> model_;
  std::unique_ptr<llm::Session> session_;
  std::string system_;
  bool shows_prompt_;
  std::vector<text::ChatMessage> messages_;
  uint64_t answers_ = 0;
};

Status chat(const ChatFlags& flags) {
  catch_interrupts();
  PTERO_ASSIGN_OR_RETURN(const llm::GenerationOptions options, generation_options(flags.sampling));
  PTERO_ASSIGN_OR_RETURN(const auto model, load_model(flags.model));
  PTERO_REJECT_IF(!model->tokenizer(), unsupported,
                  "The model brings no tokenizer; give one with --tokenizer FILE.");
  constexpr size_t kMessage = 32;  // tokens, with the template's
  PTERO_ASSIGN_OR_RETURN(auto session,
                         open_session(flags.model, model, kMessage, options.sampling));
  return Chat(flags, model, std::move(session)).run();
}

}  // namespace

void add_chat(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("chat", "Talk with a language model");
  auto flags = std::make_shared<ChatFlags>();
  add_model_flags(*command, flags->model);
  add_context_flag(*command, flags->model);
  add_warm_up_flag(*command, flags->model);
  command->add_option("--system-prompt", flags->system, "what the model is told before")
      ->type_name("TEXT");
  command
      ->add_option("--chat-template-kwargs", flags->template_kwargs,
                   "variables of the chat template, such as {\"enable_thinking\": false}")
      ->type_name("JSON");
  add_sampling_flags(*command, flags->sampling);
  command->callback([flags, &outcome] {
    if (const Status status = chat(*flags); !status.ok()) {
      outcome.status = report(status.error());
    }
  });
}

}  // namespace ptero::cli
