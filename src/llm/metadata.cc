// SPDX-License-Identifier: BSD-3-Clause
#include "llm/metadata.h"

#include <algorithm>

namespace ptero::llm {
namespace {

const pte::Tensor* tensor_at(const pte::ExecutionPlan& plan, const std::vector<uint32_t>& ids,
                             size_t i) {
  return i < ids.size() ? std::get_if<pte::Tensor>(&plan.values[ids[i]]) : nullptr;
}

// The first integer of a method, if it is one of [1, 2^31).
uint32_t size_from(const pte::Program& program, std::string_view method) {
  const std::vector<int64_t> values = constant_integers(program, method);
  return values.empty() || values[0] < 1 || values[0] > INT32_MAX
             ? 0
             : static_cast<uint32_t>(values[0]);
}

}  // namespace

std::vector<int64_t> constant_integers(const pte::Program& program, std::string_view method) {
  std::vector<int64_t> values;
  const pte::ExecutionPlan* plan = pte::find_plan(program, method);
  if (plan == nullptr) {
    return values;
  }
  for (const uint32_t id : plan->outputs) {
    if (const auto* integer = std::get_if<int64_t>(&plan->values[id])) {
      values.push_back(*integer);
    } else if (const auto* flag = std::get_if<bool>(&plan->values[id])) {
      values.push_back(*flag ? 1 : 0);
    }
  }
  return values;
}

Result<Metadata> read_metadata(const pte::Program& program, uint32_t context) {
  const pte::ExecutionPlan* plan = pte::find_plan(program, "forward");
  PTERO_REJECT_IF(plan == nullptr, unsupported,
                  "The program has no method (forward), so it is not a language model.");
  const pte::Tensor* tokens = tensor_at(*plan, plan->inputs, 0);
  const pte::Tensor* position = tensor_at(*plan, plan->inputs, 1);
  PTERO_REJECT_IF(
      plan->inputs.size() != 2 || tokens == nullptr || position == nullptr ||
          tokens->scalar_type != pte::ScalarType::int64 ||
          position->scalar_type != pte::ScalarType::int64 || tokens->sizes.size() != 2 ||
          tokens->sizes[0] != 1 || tokens->sizes[1] < 1 ||
          position->sizes != std::vector<int32_t>{1},
      unsupported,
      "Method (forward) does not take int64 tokens [1, S] and an int64 position [1], as "
      "a language model with a KV cache does.");
  const pte::Tensor* logits = tensor_at(*plan, plan->outputs, 0);
  PTERO_REJECT_IF(plan->outputs.size() != 1 || logits == nullptr ||
                      logits->scalar_type != pte::ScalarType::float32 || logits->sizes.size() < 2 ||
                      logits->sizes.back() < 1,
                  unsupported, "Method (forward) does not give float32 logits.");
  Metadata metadata;
  metadata.vocab_size = static_cast<uint32_t>(logits->sizes.back());
  metadata.all_logits = logits->sizes.size() == 3;
  metadata.max_tokens = static_cast<uint32_t>(tokens->sizes[1]);
  metadata.fixed = tokens->dynamism == pte::ShapeDynamism::fixed;
  PTERO_REJECT_IF(metadata.fixed && metadata.max_tokens != 1, unsupported,
                  "Method (forward) takes exactly {} tokens, so it cannot decode one by one.",
                  metadata.max_tokens);
  metadata.f16_gemm = size_from(program, "enable_f16_gemm") != 0;
  metadata.max_context = size_from(program, "get_max_context_len");
  if (metadata.max_context == 0) {
    metadata.max_context = size_from(program, "get_max_seq_len");
  }
  metadata.trained_context = size_from(program, "get_trained_context_len");
  if (context != 0) {
    PTERO_REJECT_IF(context < 2, invalid_argument, "The context ({}) is below 2.", context);
    PTERO_REJECT_IF(metadata.trained_context != 0 && context > metadata.trained_context,
                    invalid_argument,
                    "The context ({}) exceeds what the model was trained for ({}).", context,
                    metadata.trained_context);
    metadata.max_context = context;
    metadata.max_tokens = std::min(metadata.max_tokens, context);
  }
  PTERO_REJECT_IF(metadata.max_context == 0, unsupported,
                  "The program does not say how many positions its caches hold "
                  "(get_max_context_len), and none was asked for.");
  for (const char* method : {"get_eos_ids", "get_eos_id"}) {
    for (const int64_t id : constant_integers(program, method)) {
      if (id >= 0 && id < metadata.vocab_size) {
        metadata.end_ids.push_back(static_cast<uint32_t>(id));
      }
    }
  }
  std::sort(metadata.end_ids.begin(), metadata.end_ids.end());
  metadata.end_ids.erase(std::unique(metadata.end_ids.begin(), metadata.end_ids.end()),
                         metadata.end_ids.end());
  return metadata;
}

}  // namespace ptero::llm
