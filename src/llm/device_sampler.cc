// SPDX-License-Identifier: BSD-3-Clause
#include "llm/device_sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "llm/top_k.wgsl.h"

namespace ptero::llm {
namespace {

constexpr uint64_t kHeaderWords = 4;

}  // namespace

gpu::KernelKey DeviceSampler::kernel_key(bool half, bool is_software) {
  gpu::KernelKey key;
  key.source = &wgsl::kTopK;
  key.prelude = half ? "alias T = f16;\nconst kLowest = -65504.0;\n"
                     : "alias T = f32;\nconst kLowest = -3.4028234e38;\n";
  // Barriers cost a software adapter what threads gain.
  key.overrides = {{"wg_size", is_software ? 8.0 : 256.0}};
  if (half) {
    key.features |= gpu::FeatureSet{gpu::Feature::shader_f16};
  }
  return key;
}

Result<DeviceSampler> DeviceSampler::create(gpu::Device device, const gpu::Kernel& kernel,
                                            uint32_t rows, uint32_t vocab_size,
                                            uint32_t element_size) {
  DeviceSampler sampler(device);
  sampler.vocab_size_ = vocab_size;
  const uint64_t bytes = ceil_div<uint64_t>(uint64_t{rows} * vocab_size * element_size, 4) * 4;
  using Kind = gpu::MemoryKind;
  PTERO_ASSIGN_OR_RETURN(sampler.logits_, device.create_buffer("logits", bytes, Kind::activations));
  PTERO_ASSIGN_OR_RETURN(sampler.adjust_,
                         device.create_buffer("logit adjustments",
                                              kMostAdjustments * sizeof(Adjustment), Kind::other));
  PTERO_ASSIGN_OR_RETURN(
      sampler.found_,
      device.create_buffer("largest logits", (kHeaderWords + 2 * kLargestK) * 4, Kind::other));
  PTERO_ASSIGN_OR_RETURN(sampler.next_token_, device.create_buffer("next token", 4, Kind::other));
  const gpu::Binding bindings[] = {
      {&sampler.logits_}, {&sampler.adjust_}, {&sampler.found_}, {&sampler.next_token_}};
  PTERO_ASSIGN_OR_RETURN(const gpu::BindGroup group, device.bind(kernel, bindings));
  PTERO_ASSIGN_OR_RETURN(const size_t command,
                         sampler.step_.dispatch(kernel, group, wgsl::TopKParams{}, {1, 1, 1}));
  PTERO_REJECT_IF(command != 0, internal, "The sampler's step holds more than itself.");
  return sampler;
}

Result<graph::FollowUp> DeviceSampler::prepare(uint32_t row, uint32_t k,
                                               std::span<const Adjustment> adjust) {
  PTERO_REJECT_IF(k == 0 || k > kLargestK || adjust.size() > kMostAdjustments, invalid_argument,
                  "Candidates ({}) or adjustments ({}) exceed what one step takes ({} and {}).", k,
                  adjust.size(), kLargestK, kMostAdjustments);
  static_assert(sizeof(Adjustment) == 12);
  if (!adjust.empty()) {
    PTERO_RETURN_IF_ERROR(device_.write(adjust_, 0, std::as_bytes(adjust)));
  }
  k = std::min(k, vocab_size_);
  const wgsl::TopKParams params = {.first = row * vocab_size_,
                                   .count = vocab_size_,
                                   .k = k,
                                   .adjustments = static_cast<uint32_t>(adjust.size())};
  PTERO_RETURN_IF_ERROR(step_.set_params(0, std::as_bytes(std::span(&params, 1))));
  graph::FollowUp search;
  search.step = &step_;
  search.reads = {{&found_, 0, (kHeaderWords + 2 * uint64_t{k}) * 4}};
  return search;
}

Result<TopLogits> DeviceSampler::decode(const gpu::ReadData& data) {
  std::vector<uint32_t> words(data[0].size() / 4);
  std::memcpy(words.data(), data[0].data(), words.size() * 4);
  PTERO_REJECT_IF(words[1] != 0, internal,
                  "The model gave {} logits that are not numbers (NaN); its file or a kernel is "
                  "wrong.",
                  words[1]);
  TopLogits top;
  top.log_sum = static_cast<double>(std::bit_cast<float>(words[2])) +
                std::log(static_cast<double>(std::bit_cast<float>(words[3])));
  for (size_t i = kHeaderWords; i + 1 < words.size(); i += 2) {
    top.candidates.push_back({words[i], std::bit_cast<float>(words[i + 1])});
  }
  sort_candidates(top.candidates);
  return top;
}

}  // namespace ptero::llm
