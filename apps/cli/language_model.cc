// SPDX-License-Identifier: BSD-3-Clause
#include "cli/language_model.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/program_file.h"
#include "cli/text_file.h"
#include "llm/chat.h"

namespace ptero::cli {
namespace {

volatile std::sig_atomic_t interrupt_flag = 0;

void on_interrupt(int signal) {
  if (interrupt_flag != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  interrupt_flag = 1;
}

std::string_view words_for(llm::FinishReason reason) {
  switch (reason) {
    case llm::FinishReason::end:
      return "ended by the model";
    case llm::FinishReason::stop:
      return "ended by a stop string";
    case llm::FinishReason::length:
      return "ended after as many tokens as asked for";
    case llm::FinishReason::context:
      return "ended because the context is full";
    case llm::FinishReason::cancelled:
      break;
  }
  return "interrupted";
}

Result<std::unique_ptr<ProgramFile>> open_model_file(const ModelFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(const bool is_gguf, is_gguf_file(flags.model));
  if (!is_gguf) {
    PTERO_REJECT_IF(!flags.weights.empty(), invalid_argument,
                    "--weights is for GGUF files, and {} is none.", flags.model);
    return open_program(flags.model, flags.data);
  }
  PTERO_REJECT_IF(!flags.data.empty(), invalid_argument,
                  "--data is for .pte files, and {} is a GGUF file.", flags.model);
  convert::ConvertOptions options;
  if (!flags.weights.empty()) {
    PTERO_ASSIGN_OR_RETURN(options.weights, weight_format(flags.weights));
  }
  PTERO_ASSIGN_OR_RETURN(pte::Program program, open_gguf_model(flags.model, options, flags.cache));
  auto file = std::make_unique<ProgramFile>();
  file->program = std::move(program);
  PTERO_RETURN_IF_ERROR(file->data.add(file->program), "while reading {}", flags.model);
  return file;
}

}  // namespace

void add_model_flags(CLI::App& command, ModelFlags& flags) {
  command.add_option("model,-m,--model", flags.model, "the .pte or .gguf file")
      ->required()
      ->type_name("MODEL");
  command.add_option("--data", flags.data, "a .ptd file with external tensors")
      ->type_name("FILE.ptd");
  command
      .add_option("--tokenizer", flags.tokenizer,
                  "tokenizer.json, tiktoken or SentencePiece file; otherwise the model's own")
      ->type_name("FILE");
  command
      .add_option("--chat-template-file", flags.chat_template,
                  "Jinja chat template; otherwise the model's own")
      ->type_name("FILE");
  command
      .add_option("--weights", flags.weights,
                  "what to make of a GGUF file's weights: q4 (4-bit groups, the default), f16 or "
                  "f32")
      ->type_name("FORMAT");
  add_cache_flags(command, flags.cache);
  add_gpu_flags(command, flags.gpu);
  add_plan_flags(command, flags.gpu);
}

void add_context_flag(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("-c,--context,--ctx-size", flags.context,
                  "positions that the KV caches hold (default: as the model has them)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
}

void add_warm_up_flag(CLI::App& command, ModelFlags& flags) {
  command.add_flag(
      "--no-warmup", flags.no_warm_up,
      "leave out the short run before the first answer, in which kernels are compiled");
}

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  llm::SamplingOptions& options = flags.options;
  command
      .add_option("-n,--predict,--n-predict", flags.predict,
                  "tokens at most; -1: until the model ends")
      ->capture_default_str();
  command.add_option("--temp", options.temperature, "temperature; 0 is greedy")
      ->capture_default_str();
  command.add_option("--top-k", options.top_k, "the most likely so many; 0: all")
      ->capture_default_str();
  command.add_option("--top-p", options.top_p, "the smallest set with this probability; 1: off")
      ->capture_default_str();
  command.add_option("--min-p", options.min_p, "this fraction of the most likely; 0: off")
      ->capture_default_str();
  command.add_option("--repeat-penalty", options.repeat_penalty, "1: off")->capture_default_str();
  command
      .add_option("--repeat-last-n", options.repeat_last_n, "tokens that penalties look back at")
      ->capture_default_str();
  command.add_option("--frequency-penalty", options.frequency_penalty, "0: off")
      ->capture_default_str();
  command.add_option("--presence-penalty", options.presence_penalty, "0: off")
      ->capture_default_str();
  command.add_option("-s,--seed", flags.seed, "the same seed gives the same answer; -1: random")
      ->capture_default_str();
  command
      .add_option("-l,--logit-bias", flags.logit_bias, "change a token's logit, such as 15043-1")
      ->type_name("ID(+/-)BIAS");
  command.add_option("-r,--reverse-prompt", flags.stop, "end the answer before this text")
      ->type_name("TEXT");
  command.add_flag("--ignore-eos", flags.ignore_eos, "go on after the model's end token");
}

Result<llm::GenerationOptions> generation_options(const SamplingFlags& flags) {
  llm::GenerationOptions options;
  options.sampling = flags.options;
  options.sampling.seed =
      flags.seed >= 0 ? static_cast<uint64_t>(flags.seed) : std::random_device{}();
  for (const std::string& text : flags.logit_bias) {
    PTERO_ASSIGN_OR_RETURN(const auto bias, llm::parse_logit_bias(text),
                           "while reading --logit-bias");
    options.sampling.logit_bias.push_back(bias);
  }
  options.stop = flags.stop;
  options.ignore_end = flags.ignore_eos;
  PTERO_REJECT_IF(flags.predict < -1 || flags.predict == 0 || flags.predict > UINT32_MAX,
                  invalid_argument, "-n ({}) is neither -1 nor a number of tokens.", flags.predict);
  if (flags.predict > 0) {
    options.max_tokens = static_cast<uint32_t>(flags.predict);
  }
  PTERO_RETURN_IF_ERROR(llm::check(options.sampling));
  return options;
}

Result<std::shared_ptr<const llm::Model>> load_model(const ModelFlags& flags) {
  PTERO_ASSIGN_OR_RETURN(std::unique_ptr<ProgramFile> opened, open_model_file(flags));
  const std::shared_ptr<ProgramFile> file = std::move(opened);
  llm::ModelSource source;
  source.program = std::shared_ptr<const pte::Program>(file, &file->program);
  source.data = std::shared_ptr<const pte::DataMap>(file, &file->data);
  if (!flags.tokenizer.empty()) {
    PTERO_ASSIGN_OR_RETURN(source.tokenizer, read_text_file(flags.tokenizer));
  }
  if (!flags.chat_template.empty()) {
    PTERO_ASSIGN_OR_RETURN(source.chat_template, read_text_file(flags.chat_template));
  }
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, open_device(flags.gpu));
  PTERO_ASSIGN_OR_RETURN(source.options, plan_options(flags.gpu, device));
  source.options.context = flags.context;
  const bool shows = isatty(STDERR_FILENO) != 0;
  const uint64_t before = device.stats().bytes_written;
  const auto progress = [&] {
    if (shows) {
      fmt::print(stderr, "\rloading {} ... {} MiB on the device", flags.model,
                 (device.stats().bytes_written - before) >> 20);
    }
  };
  progress();
  const auto loading = llm::Model::load(device, std::move(source));
  Result<std::shared_ptr<const llm::Model>> model = wait_interruptibly(*loading, progress);
  if (shows) {
    fmt::print(stderr, "\r\033[K");
  }
  if (!model.ok()) {
    Error error = std::move(model).error();
    return error.add_context(fmt::format("while loading {}", flags.model));
  }
  return model;
}

Result<std::unique_ptr<llm::Session>> open_session(const ModelFlags& flags,
                                                   std::shared_ptr<const llm::Model> model,
                                                   size_t prompt_tokens,
                                                   const llm::SamplingOptions& sampling) {
  PTERO_ASSIGN_OR_RETURN(auto session, llm::Session::create(std::move(model)));
  if (flags.no_warm_up) {
    return session;
  }
  const bool shows = isatty(STDERR_FILENO) != 0;
  if (shows) {
    fmt::print(stderr, "warming up ...");
  }
  PTERO_ASSIGN_OR_RETURN(const auto run, llm::start_warm_up(*session, prompt_tokens, sampling));
  const Result<llm::GenerationResult> result = finish_answer(*run);
  if (shows) {
    fmt::print(stderr, "\r\033[K");
  }
  if (!result.ok()) {
    return result.error();
  }
  PTERO_REJECT_IF(interrupted(), cancelled, "Interrupted.");
  PTERO_RETURN_IF_ERROR(session->rewind(0));
  return session;
}

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGPIPE, SIG_IGN);
}
bool interrupted() {
  return interrupt_flag != 0;
}
void clear_interrupt() {
  interrupt_flag = 0;
}

Result<llm::GenerationResult> finish_answer(llm::Generation& generation) {
  const auto go_on = [&generation] {
    if (interrupted()) {
      generation.cancel();
    }
    return true;
  };
  PTERO_RETURN_IF_ERROR(gpu::wait_while(generation, go_on, "Interrupted."));
  return generation.take();
}

Result<std::vector<uint32_t>> chat_tokens(const llm::Model& model,
                                          const std::vector<text::ChatMessage>& messages,
                                          const std::string& template_kwargs) {
  return llm::chat_tokens(model, messages, template_kwargs);
}

std::string closing_line(const llm::GenerationResult& result) {
  const auto rate = [](size_t tokens, std::chrono::duration<double> time) {
    return time.count() > 0 ? static_cast<double>(tokens) / time.count() : 0.0;
  };
  std::string known;
  if (result.reused_tokens > 0) {
    known = fmt::format(" ({} more were known)", result.reused_tokens);
  }
  // The first token of the answer comes with the prompt.
  const size_t decoded = result.tokens.empty() ? 0 : result.tokens.size() - 1;
  return fmt::format("prompt: {} tokens{}, {:.1f} tokens/s; answer: {} tokens, {:.1f} tokens/s; {}",
                     result.prompt_tokens, known, rate(result.prompt_tokens, result.prompt_time),
                     result.tokens.size(), rate(decoded, result.decode_time),
                     words_for(result.reason));
}

}  // namespace ptero::cli
