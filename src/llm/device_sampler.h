// SPDX-License-Identifier: BSD-3-Clause
// The largest logits, found on the device: a step then reads back some hundred bytes and not the
// whole vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "gpu/step.h"
#include "graph/session.h"
#include "llm/sampling.h"

namespace ptero::llm {

struct TopLogits {
  std::vector<Candidate> candidates;  // sorted
  double log_sum = 0;                 // log of the sum of exp over all logits
};

class DeviceSampler {
 public:
  // With 8 bytes each, what is read back stays below 4 KiB.
  static constexpr uint32_t kLargestK = 256;
  // Ids whose logits can be changed in one step.
  static constexpr uint32_t kMostAdjustments = 4096;

  static gpu::KernelKey kernel_key(bool half, bool is_software);

  // `rows`: of vocab_size logits each. `element_size`: 2 for half precision, else 4.
  static Result<DeviceSampler> create(gpu::Device device, const gpu::Kernel& kernel, uint32_t rows,
                                      uint32_t vocab_size, uint32_t element_size);

  // Where a step leaves its logits.
  const gpu::Buffer& logits() const { return logits_; }
  // The token of the largest logit (int32), for a next step that does not wait for the host.
  const gpu::Buffer& next_token() const { return next_token_; }

  // The search in row `row`, to be submitted before the next one is prepared. Errors:
  // invalid_argument for more than kLargestK candidates or kMostAdjustments.
  Result<graph::FollowUp> prepare(uint32_t row, uint32_t k, std::span<const Adjustment> adjust);
  // What that reads back. Code internal when a logit was NaN.
  static Result<TopLogits> decode(const gpu::ReadData& data);

 private:
  explicit DeviceSampler(gpu::Device device) : device_(std::move(device)) {}

  gpu::Device device_;
  uint32_t vocab_size_ = 0;
  gpu::Buffer logits_;
  gpu::Buffer adjust_;
  gpu::Buffer found_;
  gpu::Buffer next_token_;
  gpu::Step step_;
};

}  // namespace ptero::llm
