// SPDX-License-Identifier: BSD-3-Clause
#include "llm/logit_distance.h"

#include <algorithm>
#include <cmath>

namespace ptero::llm {
namespace {

// What each logit has to lose for the probabilities to be exp(logit).
double log_sum(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - largest);
  }
  return largest + std::log(sum);
}

}  // namespace

Result<LogitDistance> compare_logits(std::span<const float> reference,
                                     std::span<const float> other) {
  PTERO_REJECT_IF(reference.empty() || reference.size() != other.size(), invalid_argument,
                  "Numbers of logits ({} and {}) differ or are 0.", reference.size(), other.size());
  const auto is_finite = [](float x) { return std::isfinite(x); };
  PTERO_REJECT_IF(!std::all_of(reference.begin(), reference.end(), is_finite) ||
                      !std::all_of(other.begin(), other.end(), is_finite),
                  invalid_argument, "A logit is no finite number.");
  const double reference_sum = log_sum(reference);
  const double other_sum = log_sum(other);
  LogitDistance distance;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = reference[i] - reference_sum;
    distance.divergence += std::exp(log_p) * (log_p - (other[i] - other_sum));
  }
  distance.divergence = std::max(distance.divergence, 0.0);  // but for rounding
  distance.same_top = std::max_element(reference.begin(), reference.end()) - reference.begin() ==
                      std::max_element(other.begin(), other.end()) - other.begin();
  return distance;
}

double surprise(std::span<const float> logits, uint32_t token) {
  return log_sum(logits) - logits[token];
}

}  // namespace ptero::llm
