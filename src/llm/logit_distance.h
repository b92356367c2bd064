// SPDX-License-Identifier: BSD-3-Clause
// How much another model's logits differ, as probabilities of the next token.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace ptero::llm {

struct LogitDistance {
  // Kullback-Leibler divergence of `other` from `reference` in nats; at least 0, and 0 for equals.
  double divergence = 0;
  bool same_top = false;  // whether both find the same token most likely; the first among equals
};

// Code invalid_argument when they are not of one size above 0, or a number is none.
Result<LogitDistance> compare_logits(std::span<const float> reference,
                                     std::span<const float> other);

// -log(probability) of a token in nats. `token` is below the size.
double surprise(std::span<const float> logits, uint32_t token);

}  // namespace ptero::llm
