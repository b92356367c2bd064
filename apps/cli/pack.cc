// SPDX-License-Identifier: BSD-3-Clause
// `ptero pack`: puts a tokenizer and a chat template into a .pte file, and takes them out again.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/file_output.h"
#include "cli/cli.h"
#include "cli/program_file.h"
#include "cli/text_file.h"
#include "llm/metadata.h"
#include "pte/program_writer.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ptero::cli {
namespace {

struct PackFlags {
  std::string model;
  std::string output;  // empty: the model itself
  std::string tokenizer;
  std::string config;
  std::string chat_template;
};

// Replaces what is there under this key, or adds it.
void put(pte::Program& program, std::string_view key, std::string text) {
  const auto bytes = std::as_bytes(std::span(text));
  ByteRange range = ByteRange::whole(own_bytes({bytes.begin(), bytes.end()}));
  const auto known = std::find_if(program.named_data.begin(), program.named_data.end(),
                                  [&](const pte::NamedData& data) { return data.key == key; });
  if (known != program.named_data.end()) {
    program.segments[known->segment] = std::move(range);
    return;
  }
  program.segments.push_back(std::move(range));
  program.named_data.push_back(
      {std::string(key), static_cast<uint32_t>(program.segments.size() - 1)});
}

Status pack(const PackFlags& flags) {
  PTERO_REJECT_IF(flags.tokenizer.empty() && flags.chat_template.empty() && flags.config.empty(),
                  invalid_argument,
                  "There is nothing to pack; give --tokenizer, --template or --config.");
  PTERO_ASSIGN_OR_RETURN(const std::unique_ptr<ProgramFile> file, open_program(flags.model, {}));
  pte::Program& program = file->program;
  PTERO_ASSIGN_OR_RETURN(const llm::Metadata metadata, llm::read_metadata(program), "in {}",
                         flags.model);
  if (!flags.tokenizer.empty()) {
    PTERO_ASSIGN_OR_RETURN(std::string text, read_text_file(flags.tokenizer));
    PTERO_ASSIGN_OR_RETURN(const text::Tokenizer tokenizer, text::Tokenizer::from_json(text),
                           "while reading {}", flags.tokenizer);
    PTERO_REJECT_IF(tokenizer.vocab_size() > metadata.vocab_size, invalid_argument,
                    "The tokenizer has ids up to {} and the model a vocabulary of {}; it is "
                    "another model's.",
                    tokenizer.vocab_size() - 1, metadata.vocab_size);
    put(program, llm::kTokenizerKey, std::move(text));
  }
  if (!flags.chat_template.empty()) {
    PTERO_ASSIGN_OR_RETURN(std::string text, read_text_file(flags.chat_template));
    PTERO_RETURN_IF_ERROR(text::ChatTemplate::parse(text), "while reading {}", flags.chat_template);
    put(program, llm::kChatTemplateKey, std::move(text));
  }
  if (!flags.config.empty()) {
    PTERO_ASSIGN_OR_RETURN(std::string text, read_text_file(flags.config));
    PTERO_RETURN_IF_ERROR(text::read_chat_config(text), "while reading {}", flags.config);
    put(program, llm::kTokenizerConfigKey, std::move(text));
  }
  PTERO_ASSIGN_OR_RETURN(const ByteSourcePtr bytes, pte::assemble_program(program));
  const std::string& target = flags.output.empty() ? flags.model : flags.output;
  PTERO_RETURN_IF_ERROR(write_file(target, *bytes));
  fmt::print("{} has {} bytes\n", target, bytes->size());
  return ok_status();
}

}  // namespace

Status extract_texts(const pte::Program& program, const std::string& folder) {
  constexpr std::pair<std::string_view, const char*> kFiles[] = {
      {llm::kTokenizerKey, "tokenizer.json"},
      {llm::kTokenizerConfigKey, "tokenizer_config.json"},
      {llm::kChatTemplateKey, "chat_template.jinja"}};
  size_t written = 0;
  for (const auto& [key, name] : kFiles) {
    for (const pte::NamedData& data : program.named_data) {
      if (data.key != key) {
        continue;
      }
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      PTERO_REJECT_IF(error, io, "Folder ({}) cannot be made: {}.", folder, error.message());
      const std::string path = (std::filesystem::path(folder) / name).string();
      PTERO_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                             program.segments[data.segment].copy(uint64_t{1} << 30));
      PTERO_RETURN_IF_ERROR(write_file(path, *borrow_bytes(bytes)));
      fmt::print("wrote {}\n", path);
      ++written;
    }
  }
  PTERO_REJECT_IF(written == 0, unsupported, "The program brings no tokenizer and no template.");
  return ok_status();
}

void add_pack(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("pack", "Put a tokenizer and a chat template into a .pte file");
  auto flags = std::make_shared<PackFlags>();
  command->add_option("model", flags->model, "the .pte file")->required()->type_name("MODEL");
  command->add_option("-o,--output", flags->output, "the file to write; otherwise MODEL itself")
      ->type_name("FILE.pte");
  command->add_option("--tokenizer", flags->tokenizer, "Hugging Face tokenizer.json")
      ->type_name("FILE");
  command->add_option("--template", flags->chat_template, "Jinja chat template")->type_name("FILE");
  command->add_option("--config", flags->config, "tokenizer_config.json, for begin and end tokens")
      ->type_name("FILE");
  command->callback([flags, &outcome] {
    if (const Status status = pack(*flags); !status.ok()) {
      outcome.status = report(status.error());
    }
  });
}

}  // namespace ptero::cli
