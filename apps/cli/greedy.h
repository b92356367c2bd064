// SPDX-License-Identifier: BSD-3-Clause
// Whether a language model repeats text that was decoded greedily elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cli/manifest.h"
#include "graph/method.h"

namespace ptero::cli {

// What `ptero verify` says of a model that passed.
struct ModelOutcome {
  double largest_error = 0;
  uint64_t dispatches = 0;
  size_t steps = 0;
};

// Feeds each prompt in pieces that the method takes (int64 tokens [1, S], int64 position [1] ->
// float32 logits), then the stored ids one by one. The largest logit must be the stored id's up to
// the first step where the stored margin between the first two is below 0.05 for half precision
// or 0.005 for single; all stored logits must agree within that margin or within 1e-3 of their
// value.
Result<ModelOutcome> verify_greedy(std::shared_ptr<const graph::MethodModel> method,
                                   const std::vector<GreedyEntry>& texts, bool poison);

}  // namespace ptero::cli
