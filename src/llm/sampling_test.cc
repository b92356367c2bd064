// SPDX-License-Identifier: BSD-3-Clause
#include "llm/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace ptero::llm {
namespace {

TEST_CASE("adjustments: penalties look back as far as told, once an id") {
  SamplingOptions options;
  options.repeat_penalty = 2;
  options.frequency_penalty = 0.5;
  options.presence_penalty = 0.25;
  options.repeat_last_n = 4;
  options.logit_bias = {{9, -std::numeric_limits<double>::infinity()}, {3, 1}, {100, 5}};
  const std::vector<uint32_t> history = {7, 3, 5, 3, 8};
  const auto made = adjustments(options, history, 50);
  CHECK(made == std::vector<Adjustment>{{3, 2, -1.25f + 1},
                                        {5, 2, -0.75f},
                                        {8, 2, -0.75f},
                                        {9, 1, std::numeric_limits<float>::lowest()}});
  CHECK(adjusted(4, {0, 2, 1}) == 3);
  CHECK(adjusted(-4, {0, 2, 1}) == -7);
  CHECK(adjusted(-4, made[3]) == std::numeric_limits<float>::lowest());
  options.repeat_last_n = 0;
  CHECK(adjustments(options, history, 50).size() == 2);
}

TEST_CASE("top_candidates: sorted, ties by id") {
  const std::vector<float> logits = {1, 5, 3, 5, -2, 3};
  CHECK(top_candidates(logits, 3, {}) == std::vector<Candidate>{{1, 5}, {3, 5}, {2, 3}});
  const std::vector<Adjustment> adjust = {{1, 1, -10}};
  CHECK(top_candidates(logits, 2, adjust) == std::vector<Candidate>{{3, 5}, {2, 3}});
  CHECK(top_candidates(logits, 99, {}).size() == 6);
}

TEST_CASE("uniform: in range, spread, and always the same numbers") {
  double sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    const double u = uniform(42, i);
    REQUIRE(u >= 0);
    REQUIRE(u < 1);
    sum += u;
  }
  CHECK(std::abs(sum / 10000 - 0.5) < 0.02);
  CHECK(uniform(1, 0) != uniform(2, 0));
  CHECK(uniform(1, 0) != uniform(1, 1));
  // A change here changes everybody's answers for a seed.
  CHECK(static_cast<uint64_t>(uniform(1, 0) * 0x1p53) == 1585380222369008);
}

// How often each of three candidates comes in many draws.
std::vector<double> shares(const SamplingOptions& options) {
  const std::vector<Candidate> candidates = {
      {10, std::log(0.6f)}, {20, std::log(0.3f)}, {30, std::log(0.1f)}};
  std::vector<double> counts(3);
  for (uint64_t i = 0; i < 20000; ++i) {
    counts[sample(candidates, options, i) / 10 - 1] += 1.0 / 20000;
  }
  return counts;
}

TEST_CASE("sample: shares follow the probabilities, and each filter takes its part") {
  SamplingOptions options{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
  auto got = shares(options);
  CHECK(std::abs(got[0] - 0.6) < 0.02);
  CHECK(std::abs(got[1] - 0.3) < 0.02);
  CHECK(std::abs(got[2] - 0.1) < 0.02);
  options.top_k = 2;
  got = shares(options);
  CHECK(got[2] == 0);
  CHECK(std::abs(got[0] - 2.0 / 3) < 0.02);
  options.top_k = 0;
  options.top_p = 0.85;
  CHECK(shares(options)[2] == 0);
  options.top_p = 0.95;
  CHECK(shares(options)[2] > 0);
  options.top_p = 1;
  options.min_p = 0.4;
  got = shares(options);
  CHECK(got[2] == 0);
  CHECK(got[1] > 0);
  options.min_p = 0;
  options.temperature = 0.5;  // squares the probabilities
  CHECK(std::abs(shares(options)[0] - 0.36 / 0.46) < 0.02);
  options.temperature = 0;
  CHECK(shares(options)[0] > 0.9999);
  options.temperature = 1;
  options.top_k = 1;
  CHECK(shares(options)[0] > 0.9999);
}

TEST_CASE("options that make no sense are refused by name") {
  SamplingOptions options;
  CHECK(check(options).ok());
  options.top_p = 1.5;
  CHECK(check(options).error().message() == "Value (1.5) of top-p does not lie between 0 and 1.");
  options = {};
  options.temperature = std::nan("");
  CHECK_FALSE(check(options).ok());
  options = {};
  options.logit_bias = {{1, std::nan("")}};
  CHECK_FALSE(check(options).ok());
}

TEST_CASE("a logit bias is read as llama.cpp reads it") {
  const auto bias = [](const char* text) { return *parse_logit_bias(text); };
  CHECK(bias("29905-100") == std::pair<uint32_t, double>(29905, -100));
  CHECK(bias("7+1.5") == std::pair<uint32_t, double>(7, 1.5));
  CHECK(bias("7-inf").second == -HUGE_VAL);
  for (const char* wrong : {"", "7", "7+", "7-x", "x-1", "7-1x", "-1", "7-nan", "4294967296-1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_logit_bias(wrong).ok());
  }
}

}  // namespace
}  // namespace ptero::llm
