// SPDX-License-Identifier: BSD-3-Clause
// What the language-model runtime adds to the steps of a model: greedy generation, with its
// sampling, readbacks and callbacks, beside the same steps alone, submitted one after another and
// waited for at the end. The two alternate; medians of several rounds. On a machine that is shared,
// the time of the process on all cores says more than the clock.
// Usage: generation_bench [MODEL.pte [TOKENS [ROUNDS]]], without a model random weights in the
// shape of smollm2-135m; PTERO_ADAPTER chooses an adapter.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/byte_source.h"
#include "common/bench.h"
#include "convert/convert.h"
#include "gpu/device.h"
#include "gpu/native/wait.h"
#include "llm/generation.h"
#include "llm/model.h"
#include "llm/session.h"
#include "pte/program_reader.h"
#include "pte/program_writer.h"

namespace {

using namespace ptero;

constexpr std::chrono::minutes kTimeout{10};
constexpr uint32_t kPrompt = 16;

Result<std::shared_ptr<const llm::Model>> load(gpu::Device device, const std::string& path) {
  struct Files {
    pte::Program program;
    pte::DataMap data;
  };
  const auto files = std::make_shared<Files>();
  ByteSourcePtr bytes;
  if (path.empty()) {
    PTERO_ASSIGN_OR_RETURN(const convert::ConvertedProgram made,
                           convert::random_model("smollm2-135m", {.context = 1024}));
    PTERO_ASSIGN_OR_RETURN(bytes, pte::assemble_program(made.program));
  } else {
    PTERO_ASSIGN_OR_RETURN(bytes, map_file(path));
  }
  PTERO_ASSIGN_OR_RETURN(files->program, pte::read_program(ByteRange::whole(std::move(bytes))));
  PTERO_RETURN_IF_ERROR(files->data.add(files->program));
  llm::ModelSource source;
  source.program = std::shared_ptr<const pte::Program>(files, &files->program);
  source.data = std::shared_ptr<const pte::DataMap>(files, &files->data);
  return gpu::wait_for(llm::Model::load(std::move(device), std::move(source)), kTimeout);
}

std::vector<uint32_t> prompt() {
  std::vector<uint32_t> ids(kPrompt);
  for (uint32_t i = 0; i < kPrompt; ++i) {
    ids[i] = 3 + i;
  }
  return ids;
}

// The first token comes with the prompt; `tokens` more are counted.
Result<bench::Times> generate(llm::Session& session, uint32_t tokens) {
  PTERO_RETURN_IF_ERROR(session.rewind(0));
  llm::GenerationOptions options;
  options.sampling.temperature = 0;
  options.ignore_end = true;
  options.max_tokens = tokens + 1;
  bench::Watch watch;
  uint32_t seen = 0;
  options.on_token = [&](const llm::TokenEvent&) {
    if (seen++ == 0) {
      watch = bench::Watch();
    }
    return true;
  };
  PTERO_ASSIGN_OR_RETURN(const auto generation,
                         llm::Generation::start(session, prompt(), std::move(options)));
  PTERO_RETURN_IF_ERROR(gpu::wait_for(*generation, kTimeout));
  return watch.stop() / tokens;
}

// The same positions, with one token over and over.
Result<bench::Times> bare_steps(llm::Session& session, uint32_t tokens) {
  gpu::Device device = session.model()->device();
  PTERO_RETURN_IF_ERROR(gpu::wait_for(device.finished(), kTimeout));
  const bench::Watch watch;
  for (uint32_t i = 0; i < tokens; ++i) {
    graph::HostTensor token = graph::make_host_tensor(pte::ScalarType::int64, {1, 1});
    graph::elements<int64_t>(token)[0] = 5;
    graph::HostTensor position = graph::make_host_tensor(pte::ScalarType::int64, {1});
    graph::elements<int64_t>(position)[0] = kPrompt + i;
    PTERO_ASSIGN_OR_RETURN(
        const auto running,
        session.method().run({std::move(token), std::move(position)},
                             {.inputs = {}, .outputs = {&session.sampler()->logits()}}));
    PTERO_RETURN_IF_ERROR(gpu::wait_for(*running, kTimeout));
  }
  PTERO_RETURN_IF_ERROR(gpu::wait_for(device.finished(), kTimeout));
  return watch.stop() / tokens;
}

Status measure(const std::string& path, uint32_t tokens, uint32_t rounds) {
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, bench::open_device());
  fmt::print("adapter: {}, {}\n", device.adapter().name, device.adapter().driver);
  PTERO_ASSIGN_OR_RETURN(const auto model, load(device, path));
  PTERO_REJECT_IF(kPrompt + tokens + 1 > model->metadata().max_context, invalid_argument,
                  "{} tokens do not fit the model's context of {}.", tokens,
                  model->metadata().max_context);
  PTERO_ASSIGN_OR_RETURN(const auto session, llm::Session::create(model));
  PTERO_REJECT_IF(session->sampler() == nullptr, unsupported,
                  "The logits of this model come from the host, so that no step stands alone.");
  std::vector<double> wall[2];
  std::vector<double> cpu[2];
  std::vector<double> ratios[2];
  for (uint32_t round = 0; round <= rounds; ++round) {
    PTERO_ASSIGN_OR_RETURN(const bench::Times whole, generate(*session, tokens));
    PTERO_ASSIGN_OR_RETURN(const bench::Times bare, bare_steps(*session, tokens));
    if (round == 0) {
      continue;  // compiles
    }
    wall[0].push_back(bare.wall);
    wall[1].push_back(whole.wall);
    cpu[0].push_back(bare.processor);
    cpu[1].push_back(whole.processor);
    ratios[0].push_back(whole.wall / bare.wall);
    ratios[1].push_back(whole.processor / bare.processor);
  }
  fmt::print("{} tokens, medians of {} rounds, milliseconds a token\n", tokens, rounds);
  fmt::print("  {:<24} {:>10} {:>16}\n", "", "clock", "on all cores");
  fmt::print("  {:<24} {:>10.4f} {:>16.4f}\n", "bare steps", 1e-3 * bench::median(wall[0]),
             1e-3 * bench::median(cpu[0]));
  fmt::print("  {:<24} {:>10.4f} {:>16.4f}\n", "generation", 1e-3 * bench::median(wall[1]),
             1e-3 * bench::median(cpu[1]));
  fmt::print("  {:<24} {:>9.2f}% {:>15.2f}%\n", "the runtime adds",
             100 * (bench::median(ratios[0]) - 1), 100 * (bench::median(ratios[1]) - 1));
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "";
  const int tokens = argc > 2 ? std::atoi(argv[2]) : 32;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  if (tokens < 1 || rounds < 1 || argc > 4) {
    std::puts("usage: generation_bench [MODEL.pte [TOKENS [ROUNDS]]]");
    return 2;
  }
  return bench::finish("generation_bench",
                       measure(path, static_cast<uint32_t>(tokens), static_cast<uint32_t>(rounds)));
}
