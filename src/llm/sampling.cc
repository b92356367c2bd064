// SPDX-License-Identifier: BSD-3-Clause
#include "llm/sampling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

namespace ptero::llm {
namespace {

Status check_range(const char* what, double value, double lowest, double highest) {
  PTERO_REJECT_IF(!(value >= lowest && value <= highest), invalid_argument,
                  "Value ({}) of {} does not lie between {} and {}.", value, what, lowest, highest);
  return ok_status();
}

// How many of the sorted probabilities add up to `top_p`; at least one.
size_t count_of_mass(std::span<const double> weights, double total, double top_p) {
  double mass = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    mass += weights[i];
    if (mass >= top_p * total) {
      return i + 1;
    }
  }
  return weights.size();
}

}  // namespace

Result<std::pair<uint32_t, double>> parse_logit_bias(const std::string& text) {
  const size_t sign = text.find_first_of("+-");
  uint32_t id = 0;
  double bias = 0;
  if (sign != std::string::npos && sign + 1 < text.size()) {
    const char* const begin = text.data();
    const char* const number = begin + sign + (text[sign] == '+' ? 1 : 0);
    const char* const end = begin + text.size();
    const auto [id_end, id_error] = std::from_chars(begin, begin + sign, id);
    const auto [bias_end, bias_error] = std::from_chars(number, end, bias);
    if (id_error == std::errc() && id_end == begin + sign && bias_error == std::errc() &&
        bias_end == end && !std::isnan(bias)) {
      return std::pair(id, bias);
    }
  }
  return make_error(ErrorCode::invalid_argument,
                    "Logit bias ({}) is not a token id with a signed number, such as 15043-1.5.",
                    text);
}

Status check(const SamplingOptions& options) {
  PTERO_RETURN_IF_ERROR(check_range("temperature", options.temperature, 0, 1e6));
  PTERO_RETURN_IF_ERROR(check_range("top-p", options.top_p, 0, 1));
  PTERO_RETURN_IF_ERROR(check_range("min-p", options.min_p, 0, 1));
  PTERO_RETURN_IF_ERROR(check_range("repeat-penalty", options.repeat_penalty, 1e-3, 1e3));
  PTERO_RETURN_IF_ERROR(check_range("frequency-penalty", options.frequency_penalty, -1e3, 1e3));
  PTERO_RETURN_IF_ERROR(check_range("presence-penalty", options.presence_penalty, -1e3, 1e3));
  for (const auto& [id, bias] : options.logit_bias) {
    PTERO_REJECT_IF(std::isnan(bias), invalid_argument, "The bias of token {} is not a number.",
                    id);
  }
  return ok_status();
}

std::vector<Adjustment> adjustments(const SamplingOptions& options,
                                    std::span<const uint32_t> history, uint32_t vocab_size) {
  std::map<uint32_t, Adjustment> by_id;
  if (options.has_penalties()) {
    const size_t looked_at = std::min<size_t>(history.size(), options.repeat_last_n);
    for (const uint32_t id : history.last(looked_at)) {
      const auto [entry, is_new] = by_id.try_emplace(id, Adjustment{id, 1, 0});
      if (is_new) {
        entry->second.scale = static_cast<float>(options.repeat_penalty);
        entry->second.offset -= static_cast<float>(options.presence_penalty);
      }
      entry->second.offset -= static_cast<float>(options.frequency_penalty);
    }
  }
  // A kernel may assume numbers to be finite, so "never" is the lowest of them.
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  for (const auto& [id, bias] : options.logit_bias) {
    Adjustment& entry = by_id.try_emplace(id, Adjustment{id, 1, 0}).first->second;
    entry.offset = static_cast<float>(std::clamp(entry.offset + bias, kLowest, -kLowest));
  }
  std::vector<Adjustment> result;
  for (const auto& [id, adjustment] : by_id) {
    if (id < vocab_size) {
      result.push_back(adjustment);
    }
  }
  return result;
}

float adjusted(float logit, const Adjustment& adjustment) {
  const float scaled = logit > 0 ? logit / adjustment.scale : logit * adjustment.scale;
  return std::max(scaled + adjustment.offset, std::numeric_limits<float>::lowest());
}

void sort_candidates(std::vector<Candidate>& candidates) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
}

std::vector<Candidate> top_candidates(std::span<const float> logits, uint32_t count,
                                      std::span<const Adjustment> adjust) {
  std::vector<Candidate> all;
  all.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    all.push_back({static_cast<uint32_t>(i), logits[i]});
  }
  for (const Adjustment& each : adjust) {
    all[each.id].logit = adjusted(all[each.id].logit, each);
  }
  if (count < all.size()) {
    std::nth_element(all.begin(), all.begin() + count, all.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
                     });
    all.resize(count);
  }
  sort_candidates(all);
  return all;
}

// SplitMix64's output function over a Weyl sequence that the seed starts.
double uniform(uint64_t seed, uint64_t counter) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + (counter + 1) * 0xd1b54a32d192ed03u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

uint32_t sample(std::span<const Candidate> candidates, const SamplingOptions& options,
                uint64_t counter) {
  if (options.greedy()) {
    return candidates.front().id;
  }
  if (options.top_k > 0) {
    candidates = candidates.first(std::min<size_t>(candidates.size(), options.top_k));
  }
  // As in llama.cpp, top-p and min-p look at probabilities before the temperature changes them.
  std::vector<double> weights;
  const double best = candidates.front().logit;
  double total = 0;
  for (const Candidate& candidate : candidates) {
    weights.push_back(std::exp(candidate.logit - best));
    total += weights.back();
  }
  size_t kept = count_of_mass(weights, total, options.top_p);
  while (kept > 1 && weights[kept - 1] < options.min_p) {
    --kept;
  }
  total = 0;
  for (size_t i = 0; i < kept; ++i) {
    weights[i] = std::exp((candidates[i].logit - best) / options.temperature);
    total += weights[i];
  }
  double at = uniform(options.seed, counter) * total;
  for (size_t i = 0; i < kept; ++i) {
    at -= weights[i];
    if (at < 0) {
      return candidates[i].id;
    }
  }
  return candidates[kept - 1].id;
}

}  // namespace ptero::llm
