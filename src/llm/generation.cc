// SPDX-License-Identifier: BSD-3-Clause
#include "llm/generation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ptero::llm {
namespace {

using graph::HostTensor;
using graph::Shape;

// A step that runs while the one before is read back hides the way to the device and back.
constexpr size_t kMostUnderWay = 2;

HostTensor longs(const Shape& shape, const std::vector<uint32_t>& values) {
  HostTensor tensor = graph::make_host_tensor(pte::ScalarType::int64, shape);
  std::copy(values.begin(), values.end(), graph::elements<int64_t>(tensor).begin());
  return tensor;
}

}  // namespace

std::string_view name_of(FinishReason reason) {
  constexpr std::string_view kNames[] = {"end", "stop", "length", "context", "cancelled"};
  return kNames[static_cast<size_t>(reason)];
}

Generation::Generation(Session& session, std::vector<uint32_t> prompt, GenerationOptions options)
    : session_(session),
      prompt_(std::move(prompt)),
      options_(std::move(options)),
      stop_text_(options_.stop),
      started_(Clock::now()) {
  if (session.model()->tokenizer()) {
    decoder_.emplace(*session.model()->tokenizer(), text::DecodeOptions{.skip_special = true});
  }
}

Result<std::unique_ptr<Generation>> Generation::start(Session& session,
                                                      std::vector<uint32_t> prompt,
                                                      GenerationOptions options) {
  const Metadata& metadata = session.model()->metadata();
  PTERO_RETURN_IF_ERROR(check(options.sampling));
  PTERO_REJECT_IF(prompt.empty(), invalid_argument, "The prompt has no tokens.");
  PTERO_REJECT_IF(prompt.size() >= metadata.max_context, invalid_argument,
                  "The prompt's {} tokens leave no room in the model's context of {}.",
                  prompt.size(), metadata.max_context);
  for (const uint32_t id : prompt) {
    PTERO_REJECT_IF(id >= metadata.vocab_size, invalid_argument,
                    "Token {} lies outside the model's vocabulary of {}; is the tokenizer that of "
                    "another model?",
                    id, metadata.vocab_size);
  }
  PTERO_REJECT_IF(!options.stop.empty() && !session.model()->tokenizer(), invalid_argument,
                  "Stop strings need a tokenizer, and the model has none.");
  std::unique_ptr<Generation> made(new Generation(session, std::move(prompt), std::move(options)));
  // At least one token is fed, since the caches do not keep logits.
  const std::vector<uint32_t>& before = session.tokens();
  const size_t most = std::min(before.size(), made->prompt_.size() - 1);
  size_t common = 0;
  while (common < most && before[common] == made->prompt_[common]) {
    ++common;
  }
  PTERO_RETURN_IF_ERROR(session.rewind(common));
  made->fed_ = common;
  made->position_ = common;
  made->result_.reused_tokens = common;
  made->result_.prompt_tokens = made->prompt_.size() - common;
  return made;
}

gpu::WaitTarget Generation::wait_target() const {
  if (running_ != nullptr) {
    return running_->wait_target();
  }
  return reads_.empty() ? gpu::WaitTarget{} : reads_.front()->wait_target();
}

bool Generation::poll() {
  while (true) {
    if (cancelled_ && !ended_) {
      end(FinishReason::cancelled);
    }
    if (ended_) {
      return finish(std::move(result_));
    }
    Result<bool> moved = step();
    if (!moved.ok()) {
      return finish(std::move(moved).error());
    }
    if (!*moved) {
      return false;
    }
  }
}

// One move; false when there is nothing to do but wait.
Result<bool> Generation::step() {
  if (running_ != nullptr) {
    if (!running_->advance()) {
      return false;
    }
    PTERO_ASSIGN_OR_RETURN(std::vector<HostTensor> outputs, running_->take());
    running_ = nullptr;
    PTERO_RETURN_IF_ERROR(after_run(std::move(outputs)));
    return true;
  }
  if (fed_ < prompt_.size()) {
    PTERO_RETURN_IF_ERROR(feed_prompt());
    return true;
  }
  if (next_) {
    if (!room()) {
      end(FinishReason::context);
      return true;
    }
    PTERO_RETURN_IF_ERROR(feed_token(*std::exchange(next_, std::nullopt)));
    return true;
  }
  if (host_top_) {
    accept(*std::exchange(host_top_, std::nullopt));
    return true;
  }
  if (pipelined() && !reads_.empty() && reads_.size() < kMostUnderWay && room() &&
      result_.tokens.size() + reads_.size() < options_.max_tokens) {
    PTERO_RETURN_IF_ERROR(feed_unseen_token());
    return true;
  }
  if (reads_.empty() || !reads_.front()->advance()) {
    return false;
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::ReadData data, reads_.front()->take());
  reads_.pop_front();
  PTERO_ASSIGN_OR_RETURN(const TopLogits top, DeviceSampler::decode(data));
  accept(top);
  return true;
}

bool Generation::room() const {
  return position_ < session_.model()->metadata().max_context;
}

// The device knows the next token by itself.
bool Generation::pipelined() const {
  return on_device() && options_.sampling.greedy() && !options_.sampling.has_penalties() &&
         options_.sampling.logit_bias.empty();
}

// Tokens are found on the device if few are asked for, and all logits are read back otherwise.
bool Generation::on_device() const {
  const uint32_t wanted = wanted_candidates();
  const size_t changed = options_.sampling.logit_bias.size() +
                         (options_.sampling.has_penalties() ? options_.sampling.repeat_last_n : 0);
  return session_.sampler() != nullptr && wanted > 0 && wanted <= DeviceSampler::kLargestK &&
         changed <= DeviceSampler::kMostAdjustments;
}

uint32_t Generation::wanted_candidates() const {
  const SamplingOptions& sampling = options_.sampling;
  const uint32_t for_choice = sampling.greedy() ? 1 : sampling.top_k;
  return for_choice == 0 ? 0 : std::max(for_choice, sampling.logprobs);
}

Status Generation::feed_prompt() {
  const size_t count =
      std::min<size_t>(session_.model()->metadata().max_tokens, prompt_.size() - fed_);
  std::vector<uint32_t> piece(prompt_.begin() + static_cast<ptrdiff_t>(fed_),
                              prompt_.begin() + static_cast<ptrdiff_t>(fed_ + count));
  fed_ += count;
  session_.tokens_.insert(session_.tokens_.end(), piece.begin(), piece.end());
  running_is_last_ = fed_ == prompt_.size();
  return run(std::move(piece), false);
}

Status Generation::feed_token(uint32_t id) {
  session_.tokens_.push_back(id);
  running_is_last_ = true;
  return run({id}, false);
}

Status Generation::feed_unseen_token() {
  ++unseen_fed_;
  running_is_last_ = true;
  return run({0}, true);
}

Status Generation::run(std::vector<uint32_t> tokens, bool from_device) {
  const auto position = static_cast<uint32_t>(position_);
  running_tokens_ = tokens.size();
  position_ += tokens.size();
  const Shape shape = {1, static_cast<uint32_t>(tokens.size())};
  std::vector<HostTensor> inputs = {longs(shape, tokens), longs({1}, {position})};
  graph::MethodBuffers buffers;
  if (from_device) {
    inputs[0].bytes.clear();
    buffers.inputs = {&session_.sampler()->next_token()};
  }
  if (on_device()) {
    buffers.outputs = {&session_.sampler()->logits()};
    if (running_is_last_) {
      PTERO_RETURN_IF_ERROR(prepare_search());
      buffers.follow_up = &search_;
    }
  }
  PTERO_ASSIGN_OR_RETURN(running_, session_.method_->run(std::move(inputs), std::move(buffers)));
  return ok_status();
}

// For the candidates of the token after those that run() is given.
Status Generation::prepare_search() {
  const Metadata& metadata = session_.model()->metadata();
  const auto row = static_cast<uint32_t>(metadata.all_logits ? running_tokens_ - 1 : 0);
  const std::vector<Adjustment> adjust =
      adjustments(options_.sampling, session_.tokens_, metadata.vocab_size);
  PTERO_ASSIGN_OR_RETURN(search_, session_.sampler()->prepare(row, wanted_candidates(), adjust));
  return ok_status();
}

// The logits of the last token are there, or the candidates are on their way.
Status Generation::after_run(std::vector<HostTensor> outputs) {
  if (options_.on_prompt && result_.tokens.empty() && reads_.empty() &&
      !options_.on_prompt(fed_ - result_.reused_tokens, result_.prompt_tokens)) {
    cancelled_ = true;
  }
  if (!running_is_last_) {
    return ok_status();
  }
  if (!on_device()) {
    const uint32_t vocab_size = session_.model()->metadata().vocab_size;
    return find_candidates(graph::elements<float>(outputs[0]).last(vocab_size));
  }
  if (search_.data == nullptr) {  // the model's last part is read back itself
    gpu::Device device = session_.model()->device();
    PTERO_ASSIGN_OR_RETURN(search_.data, device.submit_and_read(search_.step, search_.reads));
  }
  reads_.push_back(std::move(search_.data));
  return ok_status();
}

Status Generation::find_candidates(std::span<const float> logits) {
  TopLogits top;
  double largest = -HUGE_VAL;
  for (const float logit : logits) {
    PTERO_REJECT_IF(std::isnan(logit), internal,
                    "The model gave logits that are not numbers (NaN); its file or a kernel is "
                    "wrong.");
    largest = std::max<double>(largest, logit);
  }
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - largest);
  }
  top.log_sum = largest + std::log(sum);
  const uint32_t wanted = wanted_candidates();
  top.candidates = top_candidates(
      logits, wanted == 0 ? static_cast<uint32_t>(logits.size()) : wanted,
      adjustments(options_.sampling, session_.tokens_, static_cast<uint32_t>(logits.size())));
  host_top_ = std::move(top);
  return ok_status();
}

void Generation::accept(const TopLogits& top) {
  const uint32_t id = sample(top.candidates, options_.sampling, result_.tokens.size());
  if (result_.tokens.empty()) {
    first_token_ = Clock::now();
    result_.prompt_time = first_token_ - started_;
  }
  const std::vector<uint32_t>& ends = session_.model()->end_ids();
  const bool ends_here = std::binary_search(ends.begin(), ends.end(), id) && !options_.ignore_end;
  if (ends_here || std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) !=
                       options_.stop_ids.end()) {
    end(FinishReason::end);
    return;
  }
  result_.tokens.push_back(id);
  const std::string text = decoder_ ? stop_text_.push(decoder_->push(id)) : std::string();
  result_.text += text;
  if (options_.on_token) {
    const size_t reported = std::min<size_t>(options_.sampling.logprobs, top.candidates.size());
    const TokenEvent event{id, text, std::span(top.candidates).first(reported), top.log_sum};
    if (!options_.on_token(event)) {
      end(FinishReason::cancelled);
      return;
    }
  }
  if (stop_text_.stopped()) {
    end(FinishReason::stop);
    return;
  }
  if (result_.tokens.size() >= options_.max_tokens) {
    end(FinishReason::length);
    return;
  }
  if (unseen_fed_ > 0) {
    --unseen_fed_;  // the device has fed it to itself
    session_.tokens_.push_back(id);
  } else {
    next_ = id;
  }
}

void Generation::end(FinishReason reason) {
  result_.reason = reason;
  if (decoder_) {
    std::string rest = stop_text_.push(decoder_->finish());
    if (!stop_text_.stopped()) {
      rest += stop_text_.finish();
    }
    result_.text += rest;
    if (!rest.empty() && options_.on_token && !result_.tokens.empty()) {
      options_.on_token({result_.tokens.back(), rest, {}, 0});
    }
  }
  if (!result_.tokens.empty()) {
    result_.decode_time = Clock::now() - first_token_;
  }
  ended_ = true;
}

Result<std::unique_ptr<Generation>> start_warm_up(Session& session, size_t prompt_tokens,
                                                  const SamplingOptions& sampling) {
  // Long enough for the kernels of many rows; longer prompts take the same.
  constexpr size_t kEnough = 32;
  constexpr uint32_t kAnswer = 3;  // the first token comes with the prompt
  const size_t room = session.model()->metadata().max_context;
  const size_t count = std::min({prompt_tokens, kEnough, room > kAnswer ? room - kAnswer : 1});
  GenerationOptions options;
  options.sampling = sampling;
  options.max_tokens = kAnswer;
  options.ignore_end = true;
  return Generation::start(session, std::vector<uint32_t>(std::max<size_t>(count, 1)),
                           std::move(options));
}

}  // namespace ptero::llm
