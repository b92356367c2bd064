// SPDX-License-Identifier: BSD-3-Clause
#include "cli/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/language_model.h"
#include "llm/logit_distance.h"

namespace ptero::cli {
namespace {

Result<std::shared_ptr<const llm::Model>> load(gpu::Device device,
                                               std::shared_ptr<const pte::Program> program) {
  auto data = std::make_shared<pte::DataMap>();
  PTERO_RETURN_IF_ERROR(data->add(*program));
  const auto loading =
      llm::Model::load(std::move(device), {.program = std::move(program), .data = std::move(data)});
  return wait_interruptibly(*loading);
}

// Feeds tokens one by one.
class Feeder {
 public:
  static Result<Feeder> make(const llm::Model& model) {
    PTERO_ASSIGN_OR_RETURN(auto session, graph::MethodSession::create(model.method()));
    return Feeder(std::move(session));
  }

  // The logits of what comes next.
  Result<std::vector<float>> feed(uint32_t token) {
    std::vector<graph::HostTensor> inputs;
    for (const int64_t value : {int64_t{token}, position_++}) {
      const graph::Shape shape = inputs.empty() ? graph::Shape{1, 1} : graph::Shape{1};
      inputs.push_back(graph::make_host_tensor(pte::ScalarType::int64, shape));
      graph::elements<int64_t>(inputs.back())[0] = value;
    }
    PTERO_ASSIGN_OR_RETURN(const auto running, session_->run(std::move(inputs)));
    PTERO_ASSIGN_OR_RETURN(const std::vector<graph::HostTensor> outputs,
                           wait_interruptibly(*running));
    const std::span<const float> logits = graph::elements<float>(outputs[0]);
    return std::vector<float>(logits.begin(), logits.end());
  }

 private:
  explicit Feeder(std::unique_ptr<graph::MethodSession> session) : session_(std::move(session)) {}

  std::unique_ptr<graph::MethodSession> session_;
  int64_t position_ = 0;
};

}  // namespace

Result<Evaluation> evaluate(gpu::Device device, std::shared_ptr<const pte::Program> model,
                            std::shared_ptr<const pte::Program> reference,
                            const std::string& text) {
  PTERO_ASSIGN_OR_RETURN(const auto converted, load(device, std::move(model)));
  PTERO_REJECT_IF(!converted->tokenizer(), unsupported,
                  "The model brings no tokenizer, so there is no evaluating it on a text.");
  PTERO_ASSIGN_OR_RETURN(const std::vector<uint32_t> tokens, converted->tokenizer()->encode(text));
  PTERO_REJECT_IF(tokens.empty(), invalid_argument, "The text to evaluate has no tokens.");
  PTERO_ASSIGN_OR_RETURN(const auto unrounded, load(device, std::move(reference)),
                         "while loading the weights before they were rounded");
  PTERO_ASSIGN_OR_RETURN(Feeder rounded_feeder, Feeder::make(*converted));
  PTERO_ASSIGN_OR_RETURN(Feeder unrounded_feeder, Feeder::make(*unrounded));
  Evaluation found;
  found.of_text = tokens.size();
  found.tokens = std::min<size_t>(tokens.size(), converted->metadata().max_context);
  double surprise = 0;
  double reference_surprise = 0;
  const bool shows = isatty(STDERR_FILENO) != 0;
  for (size_t i = 0; i < found.tokens; ++i) {
    PTERO_ASSIGN_OR_RETURN(const std::vector<float> logits, rounded_feeder.feed(tokens[i]));
    PTERO_ASSIGN_OR_RETURN(const std::vector<float> expected, unrounded_feeder.feed(tokens[i]));
    PTERO_ASSIGN_OR_RETURN(const llm::LogitDistance distance, llm::compare_logits(expected, logits),
                           "at token {}", i);
    found.same_top += distance.same_top ? 1 : 0;
    found.divergence += distance.divergence;
    found.largest_divergence = std::max(found.largest_divergence, distance.divergence);
    if (i + 1 < found.tokens) {
      surprise += llm::surprise(logits, tokens[i + 1]);
      reference_surprise += llm::surprise(expected, tokens[i + 1]);
    }
    if (shows) {
      fmt::print(stderr, "\revaluating: token {} of {}", i + 1, found.tokens);
    }
  }
  if (shows) {
    fmt::print(stderr, "\r\033[K");
  }
  found.divergence /= static_cast<double>(found.tokens);
  const auto guesses = static_cast<double>(std::max<size_t>(found.tokens - 1, 1));
  found.perplexity = std::exp(surprise / guesses);
  found.reference_perplexity = std::exp(reference_surprise / guesses);
  return found;
}

}  // namespace ptero::cli
