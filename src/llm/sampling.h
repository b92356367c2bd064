// SPDX-License-Identifier: BSD-3-Clause
// From logits to one token. Names and meanings are those of llama.cpp's flags.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptero::llm {

struct SamplingOptions {
  double temperature = 0.8;        // 0: greedy
  uint32_t top_k = 40;             // the most likely so many; 0: all
  double top_p = 0.95;             // the smallest set with this probability; 1: off
  double min_p = 0.05;             // at least this fraction of the most likely; 0: off
  double repeat_penalty = 1.0;     // divides positive and multiplies negative logits; 1: off
  double frequency_penalty = 0.0;  // subtracted once for each occurrence
  double presence_penalty = 0.0;   // subtracted once
  uint32_t repeat_last_n = 64;     // how far back the penalties look; 0: no penalty
  std::vector<std::pair<uint32_t, double>> logit_bias;  // added; -infinity forbids a token
  uint64_t seed = 0;
  uint32_t logprobs = 0;  // report so many of the most likely

  bool greedy() const { return temperature <= 0 || top_k == 1; }
  bool has_penalties() const {
    return repeat_last_n > 0 &&
           (repeat_penalty != 1.0 || frequency_penalty != 0.0 || presence_penalty != 0.0);
  }
};
// invalid_argument for values that make no sense (NaN, negative, above 1).
Status check(const SamplingOptions& options);

// "29905-100", "29905+1.5", "29905-inf": llama.cpp's form of a bias.
Result<std::pair<uint32_t, double>> parse_logit_bias(const std::string& text);

// What a token's logit becomes: scale it (divide when positive, multiply when negative), then add.
struct Adjustment {
  uint32_t id = 0;
  float scale = 1;
  float offset = 0;

  bool operator==(const Adjustment&) const = default;
};
// For the penalties of what was said so far and the bias; one entry an id, in rising order.
std::vector<Adjustment> adjustments(const SamplingOptions& options,
                                    std::span<const uint32_t> history, uint32_t vocab_size);
float adjusted(float logit, const Adjustment& adjustment);

struct Candidate {
  uint32_t id = 0;
  float logit = 0;

  bool operator==(const Candidate&) const = default;
};
// The most likely first; equal logits by rising id.
void sort_candidates(std::vector<Candidate>& candidates);
// The `count` most likely of all, sorted, after the adjustments.
std::vector<Candidate> top_candidates(std::span<const float> logits, uint32_t count,
                                      std::span<const Adjustment> adjust);

// A number in [0, 1) that depends on its arguments alone: the same on every machine.
double uniform(uint64_t seed, uint64_t counter);

// Picks one of the sorted candidates (at least one); `counter` is the token's number in the answer.
uint32_t sample(std::span<const Candidate> candidates, const SamplingOptions& options,
                uint64_t counter);

}  // namespace ptero::llm
