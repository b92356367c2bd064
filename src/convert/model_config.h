// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: the numbers of a model, wherever they come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/convert.h"
#include "gguf/gguf.h"

namespace ptero::convert {

struct ModelConfig {
  std::string architecture;
  uint32_t layers = 0;
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t ffn_width = 0;
  uint32_t vocabulary = 0;
  uint32_t trained_context = 0;
  float norm_epsilon = 0;
  // Which elements of a head turn together: neighbours, or element i and i + rotated / 2.
  bool rotate_halves = false;
  // Angle of each pair at position 1, divided by the model's factors; rotated elements / 2 of them.
  std::vector<double> frequencies;

  uint32_t context = 0;
  uint32_t max_seq = 0;
  uint32_t largest_context = 0;  // trained for, and within the sliding window if there is one
};

// Numbers that are 0 or contradict each other do not come back.
Result<ModelConfig> read_config(const gguf::File& file);

// Checks the options against the model and puts them into `config`.
Status apply_options(const ConvertOptions& options, ModelConfig& config);

// A sliding window must not be shorter than the context: no operator has one.
Status check_window(const gguf::File& file, ModelConfig& config);

// Angles of pairs: base^(-2i / rotated).
std::vector<double> rope_frequencies(double base, uint32_t rotated);

}  // namespace ptero::convert
