// SPDX-License-Identifier: BSD-3-Clause
#include "cli/greedy.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "cli/program_file.h"

namespace ptero::cli {
namespace {

using graph::HostTensor;
using graph::Shape;
using pte::ScalarType;

bool uses_half(const graph::MethodModel& method, const pte::ExecutionPlan& plan) {
  // Widened tensors count: the file's numbers are of half precision all the same.
  for (const pte::BackendDelegate& delegate : plan.delegates) {
    for (const pte::CompileSpec& spec : delegate.compile_specs) {
      if (spec.key == "force_fp16" && !spec.value.empty() && spec.value[0] != std::byte{0}) {
        return true;
      }
    }
  }
  for (const auto& graph : method.delegates()) {
    for (const pte::GraphValue& value : graph->graph().values) {
      const auto* tensor = std::get_if<pte::GraphTensor>(&value);
      if (tensor != nullptr && tensor->dtype == pte::GraphDtype::float16) {
        return true;
      }
    }
  }
  return false;
}

HostTensor longs(const Shape& shape, std::span<const int64_t> values) {
  HostTensor tensor = graph::make_host_tensor(ScalarType::int64, shape);
  std::copy(values.begin(), values.end(), graph::elements<int64_t>(tensor).begin());
  return tensor;
}

// The most tokens of one call, from the method's own bound.
Result<uint32_t> longest_call(const pte::ExecutionPlan& plan) {
  const auto tensor = [&](size_t i) {
    return i < plan.inputs.size() ? std::get_if<pte::Tensor>(&plan.values[plan.inputs[i]])
                                  : nullptr;
  };
  const pte::Tensor* tokens = tensor(0);
  const pte::Tensor* position = tensor(1);
  PTERO_REJECT_IF(
      plan.inputs.size() != 2 || tokens == nullptr || position == nullptr ||
          tokens->sizes.size() != 2 || position->sizes.size() != 1 || tokens->sizes[1] < 1,
      unsupported, "Method ({}) does not take tokens [1, S] and a position [1].", plan.name);
  return tokens->dynamism == pte::ShapeDynamism::fixed ? 1
                                                       : static_cast<uint32_t>(tokens->sizes[1]);
}

class Decoder {
 public:
  Decoder(graph::MethodSession& session, ModelOutcome& outcome)
      : session_(session), outcome_(outcome) {}

  // The logits after the last of these.
  Result<std::vector<float>> feed(std::span<const int64_t> ids) {
    const Shape shape = {1, static_cast<uint32_t>(ids.size())};
    PTERO_ASSIGN_OR_RETURN(
        const std::vector<HostTensor> outputs,
        run_method(session_, {longs(shape, ids), longs({1}, std::span(&position_, 1))}));
    PTERO_REJECT_IF(outputs.size() != 1 || outputs[0].type != ScalarType::float32 ||
                        outputs[0].shape.rank() < 2,
                    unsupported, "The method does not give float32 logits.");
    position_ += static_cast<int64_t>(ids.size());
    outcome_.dispatches += session_.last_dispatches();
    ++outcome_.steps;
    const size_t vocabulary = outputs[0].shape[outputs[0].shape.rank() - 1];
    const std::span<const float> logits = graph::elements<float>(outputs[0]);
    PTERO_REJECT_IF(vocabulary == 0 || logits.size() < vocabulary, unsupported,
                    "The method gives no logits.");
    const auto last = logits.last(vocabulary);
    return std::vector<float>(last.begin(), last.end());
  }

 private:
  graph::MethodSession& session_;
  ModelOutcome& outcome_;
  int64_t position_ = 0;
};

Status verify_text(Decoder& decoder, const GreedyEntry& text, uint32_t longest, double margin,
                   ModelOutcome& outcome) {
  std::vector<float> logits;
  for (size_t at = 0; at < text.prompt.size(); at += longest) {
    const size_t count = std::min<size_t>(longest, text.prompt.size() - at);
    PTERO_ASSIGN_OR_RETURN(logits, decoder.feed(std::span(text.prompt).subspan(at, count)),
                           "in the prompt");
  }
  bool sure = true;
  for (size_t step = 0; step < text.ids.size(); ++step) {
    if (step > 0) {
      PTERO_ASSIGN_OR_RETURN(logits, decoder.feed(std::span(text.ids).subspan(step - 1, 1)),
                             "at id {}", step - 1);
    }
    PTERO_REJECT_IF(
        std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }),
        invalid_argument, "A logit is NaN, at id {}.", step);
    const auto& top = text.top[step];
    sure = sure && top[0].second - top[1].second >= margin;
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    PTERO_REJECT_IF(sure && best != text.ids[step], invalid_argument, "Id {} is {} and not {}.",
                    step, best, text.ids[step]);
    for (const auto& [id, logit] : top) {
      PTERO_REJECT_IF(id < 0 || static_cast<size_t>(id) >= logits.size(), invalid_argument,
                      "Id ({}) lies outside the vocabulary ({}).", id, logits.size());
      const double error = std::abs(logits[static_cast<size_t>(id)] - logit);
      PTERO_REJECT_IF(error > margin && error > 1e-3 * std::abs(logit), invalid_argument,
                      "The logit of id {} is {} and not {}, at id {}.", id,
                      logits[static_cast<size_t>(id)], logit, step);
      outcome.largest_error = std::max(outcome.largest_error, error);
    }
  }
  return ok_status();
}

}  // namespace

Result<ModelOutcome> verify_greedy(std::shared_ptr<const graph::MethodModel> method,
                                   const std::vector<GreedyEntry>& texts, bool poison) {
  ModelOutcome outcome;
  const double margin = uses_half(*method, method->plan()) ? 0.05 : 0.005;
  PTERO_ASSIGN_OR_RETURN(const uint32_t longest, longest_call(method->plan()));
  for (const GreedyEntry& text : texts) {
    PTERO_ASSIGN_OR_RETURN(const auto session,
                           graph::MethodSession::create(method, {.poison_activations = poison}));
    Decoder decoder(*session, outcome);
    PTERO_RETURN_IF_ERROR(verify_text(decoder, text, longest, margin, outcome), "in text \"{}\"",
                          text.name);
  }
  return outcome;
}

}  // namespace ptero::cli
