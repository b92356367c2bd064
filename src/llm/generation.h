// SPDX-License-Identifier: BSD-3-Clause
// From a prompt to an answer, token by token.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/operation.h"
#include "llm/sampling.h"
#include "llm/session.h"
#include "llm/stop_text.h"

namespace ptero::llm {

enum class FinishReason : uint8_t {
  end,      // the model ended its answer
  stop,     // a stop string
  length,   // max_tokens
  context,  // the caches are full
  cancelled,
};
std::string_view name_of(FinishReason reason);

struct TokenEvent {
  uint32_t id = 0;
  std::string_view text;                  // whole characters; empty while half of one is held back
  std::span<const Candidate> candidates;  // sorted; as many as logprobs asks for
  double log_sum = 0;                     // logit - log_sum is a log probability
};

struct GenerationOptions {
  uint32_t max_tokens = UINT32_MAX;
  SamplingOptions sampling;
  std::vector<std::string> stop;   // ends the answer before the first of these
  std::vector<uint32_t> stop_ids;  // as the model's own end tokens
  bool ignore_end = false;         // goes on after the model's end tokens
  // Called for each token of the answer; false cancels.
  std::function<bool(const TokenEvent&)> on_token;
  // Called after each piece of the prompt: tokens done, of how many; false cancels.
  std::function<bool(size_t, size_t)> on_prompt;
};

struct GenerationResult {
  std::vector<uint32_t> tokens;  // without the one that ended it
  std::string text;              // empty without a tokenizer
  FinishReason reason = FinishReason::end;
  size_t prompt_tokens = 0;                     // fed
  size_t reused_tokens = 0;                     // already in the caches
  std::chrono::duration<double> prompt_time{};  // until the first token was known
  std::chrono::duration<double> decode_time{};  // of the others
};

// Resumable. The session, and what the callbacks use, outlive it.
class Generation : public gpu::Pending<GenerationResult> {
 public:
  // `prompt` is the whole history; what the session holds of it already is not computed again.
  // Errors: invalid_argument for an empty prompt, ids outside the vocabulary, a prompt that fills
  // the caches, or wrong options.
  static Result<std::unique_ptr<Generation>> start(Session& session, std::vector<uint32_t> prompt,
                                                   GenerationOptions options);

  // Ends it at the next advance(), with what there is.
  void cancel() { cancelled_ = true; }
  gpu::WaitTarget wait_target() const override;

 private:
  using Clock = std::chrono::steady_clock;

  Generation(Session& session, std::vector<uint32_t> prompt, GenerationOptions options);
  bool poll() override;
  Result<bool> step();
  Status feed_prompt();
  Status feed_token(uint32_t id);
  Status feed_unseen_token();
  Status run(std::vector<uint32_t> tokens, bool from_device);
  Status after_run(std::vector<graph::HostTensor> outputs);
  Status prepare_search();
  Status find_candidates(std::span<const float> logits);
  void accept(const TopLogits& top);
  bool on_device() const;
  bool pipelined() const;
  bool room() const;
  uint32_t wanted_candidates() const;
  void end(FinishReason reason);

  Session& session_;
  std::vector<uint32_t> prompt_;
  GenerationOptions options_;
  std::optional<text::StreamDecoder> decoder_;
  StopText stop_text_;
  size_t fed_ = 0;       // of the prompt
  size_t position_ = 0;  // in the caches, submitted steps included
  size_t running_tokens_ = 0;
  bool running_is_last_ = false;
  graph::FollowUp search_;  // for candidates, submitted with what runs
  std::unique_ptr<gpu::Pending<std::vector<graph::HostTensor>>> running_;
  std::deque<std::unique_ptr<gpu::Pending<gpu::ReadData>>> reads_;  // tokens under way
  std::optional<TopLogits> host_top_;
  size_t unseen_fed_ = 0;         // steps submitted whose token the host does not know yet
  std::optional<uint32_t> next_;  // known, not fed yet
  bool cancelled_ = false;
  bool ended_ = false;
  Clock::time_point started_;
  Clock::time_point first_token_;
  GenerationResult result_;
};

// A prompt and two steps whose tokens nobody reads, for a session that is empty: drivers compile a
// kernel, and plans are made, when it first runs, which would otherwise be counted as the speed of
// the first answer. `prompt_tokens` is the length of the prompt that will come, `sampling` what it
// will be answered with. Rewind the session to 0 afterwards.
Result<std::unique_ptr<Generation>> start_warm_up(Session& session, size_t prompt_tokens,
                                                  const SamplingOptions& sampling);

}  // namespace ptero::llm
