// SPDX-License-Identifier: BSD-3-Clause
// What the commands for language models share: flags, loading with progress, Ctrl-C.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "cli/gguf_model.h"
#include "gpu/native/wait.h"
#include "llm/generation.h"
#include "llm/model.h"

namespace ptero::cli {

struct ModelFlags {
  std::string model;
  std::vector<std::string> data;
  std::string tokenizer;
  std::string chat_template;  // a file
  uint32_t context = 0;       // 0: the model's own
  std::string weights;        // of a GGUF file; empty: q4
  bool no_warm_up = false;
  CacheFlags cache;
  GpuFlags gpu;
};
// -c; `ptero bench` takes a list instead.
void add_context_flag(CLI::App& command, ModelFlags& flags);
void add_model_flags(CLI::App& command, ModelFlags& flags);

struct SamplingFlags {
  llm::SamplingOptions options;
  int64_t seed = -1;  // -1: another one each time
  std::vector<std::string> logit_bias;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  int64_t predict = -1;  // -1: until the model ends
};
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);
// `fallback_seed` when no seed is given.
Result<llm::GenerationOptions> generation_options(const SamplingFlags& flags);

// Loads the model; progress on stderr when that is a terminal. Ctrl-C ends it.
Result<std::shared_ptr<const llm::Model>> load_model(const ModelFlags& flags);

// --no-warmup, for commands that answer.
void add_warm_up_flag(CLI::App& command, ModelFlags& flags);

// A session whose first answer, to a prompt of about so many tokens, runs at full speed.
Result<std::unique_ptr<llm::Session>> open_session(const ModelFlags& flags,
                                                   std::shared_ptr<const llm::Model> model,
                                                   size_t prompt_tokens,
                                                   const llm::SamplingOptions& sampling);

// From here on Ctrl-C sets a flag; a second one before it is cleared ends the program.
void catch_interrupts();
bool interrupted();
void clear_interrupt();

// Waits for as long as it takes, looking for Ctrl-C in between, and calls `meanwhile` each time.
// Code cancelled after Ctrl-C.
template <typename T>
Result<T> wait_interruptibly(gpu::Pending<T>& operation,
                             const std::function<void()>& meanwhile = {}) {
  const auto go_on = [&meanwhile] {
    if (meanwhile) {
      meanwhile();
    }
    return !interrupted();
  };
  PTERO_RETURN_IF_ERROR(gpu::wait_while(operation, go_on, "Interrupted."));
  return operation.take();
}

// Waits for an answer; Ctrl-C ends it with what there is.
Result<llm::GenerationResult> finish_answer(llm::Generation& generation);

// A conversation as the model's chat template writes it. The model has a tokenizer and a template.
Result<std::vector<uint32_t>> chat_tokens(const llm::Model& model,
                                          const std::vector<text::ChatMessage>& messages,
                                          const std::string& template_kwargs);

// "prompt 37 tokens (5 known), 210.3 tokens/s; answer 10 tokens, 41.0 tokens/s; ended by the model"
std::string closing_line(const llm::GenerationResult& result);

}  // namespace ptero::cli
