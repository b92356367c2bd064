// SPDX-License-Identifier: BSD-3-Clause
// Generation on a device, with a small model that PyTorch exported: the same tokens whichever way
// the work is cut, and what stays on the device.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "llm/generation.h"
#include "pte/program_reader.h"

namespace ptero::llm {
namespace {

using namespace gpu::testing;
using Tokens = std::vector<uint32_t>;

gpu::Device& shared_device() {
  static gpu::Device device = open_device();
  return device;
}

// Exported test models do not say how large their context is: a method that does is added.
std::shared_ptr<const Model> load(const std::string& name, int64_t context = 48,
                                  gpu::Device& device = shared_device(),
                                  std::optional<bool> f16_gemm = {},
                                  const graph::PlanOptions& options = {}) {
  struct Files {
    pte::Program program;
    pte::DataMap data;
  };
  const auto files = std::make_shared<Files>();
  files->program = must(pte::read_program(ByteRange::whole(
      must(map_file(std::string(PTERO_TESTDATA) + "/models/llama/" + name + ".pte")))));
  must(files->data.add(files->program));
  pte::ExecutionPlan plan;
  plan.name = "get_max_context_len";
  plan.values = {context};
  plan.outputs = {0};
  files->program.plans.push_back(plan);
  if (f16_gemm) {
    plan.name = "enable_f16_gemm";
    plan.values = {*f16_gemm};
    files->program.plans.push_back(plan);
  }
  ModelSource source;
  source.options = options;
  source.program = std::shared_ptr<const pte::Program>(files, &files->program);
  source.data = std::shared_ptr<const pte::DataMap>(files, &files->data);
  return must(Model::load(device, std::move(source)));
}

GenerationOptions greedy(uint32_t count) {
  GenerationOptions options;
  options.max_tokens = count;
  options.sampling.temperature = 0;
  return options;
}

GenerationResult generate(Session& session, Tokens prompt, GenerationOptions options) {
  const auto generation = must(Generation::start(session, std::move(prompt), std::move(options)));
  return must(gpu::wait_for(*generation));
}

const Tokens kPrompt = {5, 99, 17, 3, 64, 120, 8, 1, 77, 42, 31};

// The largest logit of each step, read back whole.
Tokens by_hand(const std::shared_ptr<const Model>& model, const Tokens& prompt, size_t count) {
  const auto session = must(graph::MethodSession::create(model->method()));
  const auto longs = [](const graph::Shape& shape, const std::vector<int64_t>& values) {
    graph::HostTensor tensor = graph::make_host_tensor(pte::ScalarType::int64, shape);
    std::copy(values.begin(), values.end(), graph::elements<int64_t>(tensor).begin());
    return tensor;
  };
  Tokens answer;
  int64_t position = 0;
  Tokens next = prompt;
  while (answer.size() < count) {
    uint32_t best = 0;
    for (const uint32_t token : next) {
      const auto outputs = must(session->run({longs({1, 1}, {token}), longs({1}, {position++})}));
      const auto logits = graph::elements<float>(outputs[0]);
      best = static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    }
    answer.push_back(best);
    next = {best};
  }
  return answer;
}

TEST_CASE("greedy: the device finds the token that the host finds, in every kind of file") {
  for (const char* name : {"llama_fp32", "llama_4w", "llama_4w_all_logits", "llama_4w_one_token",
                           "llama_4w_half", "llama_8da4w", "qwen2_4w", "qwen3_4w"}) {
    CAPTURE(name);
    const auto model = load(name);
    const auto session = must(Session::create(model));
    const GenerationResult result = generate(*session, kPrompt, greedy(12));
    CHECK(result.reason == FinishReason::length);
    CHECK(result.prompt_tokens == kPrompt.size());
    CHECK(result.tokens == by_hand(model, kPrompt, 12));
    // The last token was never fed.
    CHECK(session->tokens().size() == kPrompt.size() + 11);
  }
}

TEST_CASE("products are made in f16 where the program says so, unless the user says something") {
  const auto f16_gemm = [](std::optional<bool> program, std::optional<bool> user) {
    graph::PlanOptions options;
    options.enable_f16_gemm = user;
    const auto model = load("llama_4w", 48, shared_device(), program, options);
    CHECK(model->metadata().f16_gemm == program.value_or(false));
    return model->method()->delegates().at(0)->facts().options.enable_f16_gemm;
  };
  CHECK(f16_gemm({}, {}) == false);
  CHECK(f16_gemm(false, {}) == false);
  CHECK(f16_gemm(true, {}) == true);
  CHECK(f16_gemm(true, false) == false);
  CHECK(f16_gemm({}, true) == true);
}

TEST_CASE("a token costs little to read, and plans nothing") {
  const auto model = load("llama_4w");
  const auto session = must(Session::create(model));
  generate(*session, kPrompt, greedy(3));
  GenerationOptions options = greedy(10);
  options.sampling = {.temperature = 1, .top_k = 100, .repeat_penalty = 1.1, .seed = 3};
  for (const bool with_top_k : {false, true}) {
    must(session->rewind(0));
    const uint64_t before = shared_device().stats().bytes_read_back;
    const uint64_t calls = session->method().operator_calls();
    const uint64_t submits = shared_device().stats().submits;
    const auto result = generate(*session, kPrompt, with_top_k ? options : greedy(10));
    const uint64_t read = shared_device().stats().bytes_read_back - before;
    CHECK(read / result.tokens.size() <= 4096);
    CHECK(read / result.tokens.size() >= 8);
    CHECK(session->method().operator_calls() == calls);
    // The search for a token goes with the step that gives its logits.
    CHECK(shared_device().stats().submits - submits == result.tokens.size());
  }
}

TEST_CASE("after a warm-up the first answer compiles nothing and is the same") {
  for (const char* name : {"llama_4w", "llama_4w_one_token"}) {
    CAPTURE(name);
    const auto cold = must(Session::create(load(name)));
    const GenerationResult expected = generate(*cold, kPrompt, greedy(6));
    // A device of its own: pipelines are shared by all models of one.
    gpu::Device device = open_device();
    const auto session = must(Session::create(load(name, 48, device)));
    const auto warm_up = must(start_warm_up(*session, kPrompt.size(), greedy(1).sampling));
    CHECK(must(gpu::wait_for(*warm_up)).tokens.size() == 3);
    CHECK(session->rewind(0).ok());
    const uint64_t pipelines = device.stats().pipelines_created;
    CHECK(pipelines > 0);
    const GenerationResult result = generate(*session, kPrompt, greedy(6));
    CHECK(result.tokens == expected.tokens);
    CHECK(result.reused_tokens == 0);
    CHECK(device.stats().pipelines_created == pipelines);
  }
  // As long as a prompt may be where the caches are short.
  const auto tight = must(Session::create(load("llama_4w", 4)));
  const auto warm_up = must(start_warm_up(*tight, 100, greedy(1).sampling));
  CHECK(must(gpu::wait_for(*warm_up)).prompt_tokens == 1);
}

TEST_CASE("the past is reused, rewound, forked, saved and restored without a change") {
  const auto model = load("llama_4w");
  const auto session = must(Session::create(model));
  const Tokens first = generate(*session, kPrompt, greedy(6)).tokens;

  Tokens longer = kPrompt;
  longer.insert(longer.end(), first.begin(), first.end());
  longer.insert(longer.end(), {11, 12, 13});
  const auto fork = must(session->fork());
  const auto saved = must(session->save());
  const GenerationResult reused = generate(*session, longer, greedy(6));
  CHECK(reused.reused_tokens == kPrompt.size() + 5);
  CHECK(reused.prompt_tokens == 4);

  const auto fresh = must(Session::create(model));
  const GenerationResult anew = generate(*fresh, longer, greedy(6));
  CHECK(anew.reused_tokens == 0);
  CHECK(anew.tokens == reused.tokens);

  CHECK(fork->tokens().size() == kPrompt.size() + 5);
  CHECK(generate(*fork, longer, greedy(6)).tokens == anew.tokens);

  const auto other = must(Session::create(model));
  must(other->restore(saved));
  const GenerationResult restored = generate(*other, longer, greedy(6));
  CHECK(restored.reused_tokens == kPrompt.size() + 5);
  CHECK(restored.tokens == anew.tokens);
  CHECK(other->restore(std::span(saved).first(saved.size() - 1)).error().code() ==
        ErrorCode::invalid_argument);
  CHECK(other->restore(std::span(saved).first(3)).error().code() == ErrorCode::invalid_argument);

  // Another history from the middle on.
  Tokens changed = longer;
  changed[4] = 2;
  const GenerationResult rewritten = generate(*session, changed, greedy(6));
  CHECK(rewritten.reused_tokens == 4);
  CHECK(rewritten.tokens == generate(*must(Session::create(model)), changed, greedy(6)).tokens);
  CHECK_FALSE(session->rewind(10'000).ok());
}

TEST_CASE("prompts longer than one call are fed in pieces") {
  const auto model = load("llama_4w");
  Tokens prompt;
  for (uint32_t i = 0; i < 40; ++i) {
    prompt.push_back(i * 37 % 128);
  }
  REQUIRE(model->metadata().max_tokens < prompt.size());
  const auto session = must(Session::create(model));
  std::vector<size_t> progress;
  GenerationOptions options = greedy(4);
  options.on_prompt = [&](size_t done, size_t) {
    progress.push_back(done);
    return true;
  };
  CHECK(generate(*session, prompt, options).tokens == by_hand(model, prompt, 4));
  REQUIRE(progress.size() >= 2);
  CHECK(progress[0] == model->metadata().max_tokens);
  CHECK(progress[1] == 40);
}

TEST_CASE("sampling: a seed gives the same tokens on the device's way and on the host's") {
  const auto model = load("llama_4w");
  const auto run = [&](uint32_t top_k, uint64_t seed) {
    const auto session = must(Session::create(model));
    GenerationOptions options;
    options.max_tokens = 16;
    options.sampling = {.temperature = 1.3,
                        .top_k = top_k,
                        .top_p = 0.9,
                        .min_p = 0.01,
                        .repeat_penalty = 1.2,
                        .frequency_penalty = 0.1,
                        .seed = seed};
    options.sampling.logit_bias = {{7, -1e9}, {9, 1.5}};
    return generate(*session, kPrompt, options).tokens;
  };
  // 128 is the whole vocabulary: found on the device; 0 reads all logits back.
  CHECK(run(128, 1) == run(0, 1));
  CHECK(run(128, 2) == run(0, 2));
  CHECK(run(128, 1) != run(128, 2));
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const Tokens tokens = run(128, seed);
    CHECK(std::find(tokens.begin(), tokens.end(), 7) == tokens.end());
  }
}

TEST_CASE("an answer ends where it should") {
  const auto model = load("llama_4w", 20);
  const auto session = must(Session::create(model));
  const Tokens whole = generate(*session, kPrompt, greedy(8)).tokens;

  GenerationOptions stops = greedy(8);
  stops.stop_ids = {whole[3]};
  const GenerationResult stopped = generate(*session, kPrompt, stops);
  const auto first = std::find(whole.begin(), whole.end(), whole[3]);
  CHECK(stopped.reason == FinishReason::end);
  CHECK(stopped.tokens == Tokens(whole.begin(), first));

  // Positions 0 to 19 are fed; the token after them is still known.
  const GenerationResult full = generate(*session, kPrompt, greedy(100));
  CHECK(full.reason == FinishReason::context);
  CHECK(full.tokens.size() == 20 - kPrompt.size() + 1);
  CHECK(session->tokens().size() == 20);

  GenerationOptions cancels = greedy(100);
  size_t seen = 0;
  cancels.on_token = [&](const TokenEvent& event) {
    CHECK(event.id == full.tokens[seen]);
    return ++seen < 3;
  };
  CHECK(generate(*session, kPrompt, cancels).reason == FinishReason::cancelled);
  CHECK(seen == 3);
  // What was cancelled leaves the session right.
  CHECK(generate(*session, kPrompt, greedy(8)).tokens == whole);

  const auto pending = must(Generation::start(*session, kPrompt, greedy(100)));
  pending->cancel();
  CHECK(must(gpu::wait_for(*pending)).reason == FinishReason::cancelled);
  CHECK(generate(*session, kPrompt, greedy(8)).tokens == whole);
}

TEST_CASE("log probabilities add up") {
  const auto model = load("llama_fp32");
  const auto session = must(Session::create(model));
  GenerationOptions options = greedy(3);
  options.sampling.logprobs = 128;
  options.on_token = [](const TokenEvent& event) {
    CHECK(event.candidates.size() == 128);
    double sum = 0;
    for (const Candidate& candidate : event.candidates) {
      sum += std::exp(candidate.logit - event.log_sum);
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
    return true;
  };
  generate(*session, kPrompt, options);
}

TEST_CASE("what makes no sense is refused in a sentence") {
  const auto model = load("llama_4w", 20);
  const auto session = must(Session::create(model));
  const auto failure = [&](Tokens prompt, GenerationOptions options) {
    return Generation::start(*session, std::move(prompt), std::move(options)).error().message();
  };
  CHECK(failure({}, greedy(1)) == "The prompt has no tokens.");
  CHECK(failure(Tokens(20, 1), greedy(1)) ==
        "The prompt's 20 tokens leave no room in the model's context of 20.");
  CHECK(failure({1, 128}, greedy(1))
            .starts_with("Token 128 lies outside the model's vocabulary of 128"));
  GenerationOptions wrong = greedy(1);
  wrong.sampling.top_p = 2;
  CHECK(failure({1}, wrong) == "Value (2) of top-p does not lie between 0 and 1.");
  GenerationOptions stop = greedy(1);
  stop.stop = {"x"};
  CHECK(failure({1}, stop) == "Stop strings need a tokenizer, and the model has none.");
}

}  // namespace
}  // namespace ptero::llm
