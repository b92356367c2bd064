// SPDX-License-Identifier: BSD-3-Clause
// What rounding its weights did to a model, on a text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "gpu/device.h"
#include "pte/program.h"

namespace ptero::cli {

struct Evaluation {
  size_t tokens = 0;   // that were fed and whose successors were guessed
  size_t of_text = 0;  // as many has the text
  size_t same_top = 0;
  double divergence = 0;          // mean, nats
  double largest_divergence = 0;  // of a token
  double perplexity = 0;
  double reference_perplexity = 0;
};

// Both models see the text token by token, side by side on the device. `model` brings the
// tokenizer. Ctrl-C ends it (catch_interrupts()).
Result<Evaluation> evaluate(gpu::Device device, std::shared_ptr<const pte::Program> model,
                            std::shared_ptr<const pte::Program> reference, const std::string& text);

}  // namespace ptero::cli
