// SPDX-License-Identifier: BSD-3-Clause
// `ptero bench`: how fast a language model is, in llama-bench's terms. A row is a prompt (pp) or an
// answer (tg), repeated.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "base/process_memory.h"
#include "cli/cli.h"
#include "cli/language_model.h"

namespace ptero::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::vector<uint32_t> prompts = {512};
  std::vector<uint32_t> answers = {128};
  std::vector<uint32_t> depths = {0};
  std::vector<uint32_t> contexts;  // none: the model's own
  uint32_t repeat = 5;
  std::string output = "md";
  bool profile = false;
};

struct Row {
  std::string test;           // "pp512", "tg128 @ d512"
  std::string failure;        // empty: it ran
  std::vector<double> rates;  // tokens per second, one a repetition
  double cpu_seconds = 0;     // of the process, per token
  double dispatches = 0;      // per token, as the ones below
  double submits = 0;
  double operator_calls = 0;
  double bytes_read_back = 0;
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) {
    sum += (value - middle) * (value - middle);
  }
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Tokens that mean nothing and differ.
std::vector<uint32_t> some_tokens(size_t count, uint32_t vocab_size) {
  std::vector<uint32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<uint32_t>((i * 7919 + 17) % vocab_size);
  }
  return tokens;
}

class Bench {
 public:
  Bench(const BenchFlags& flags, std::shared_ptr<const llm::Model> model)
      : flags_(flags), model_(std::move(model)) {}

  // One row; what fails is written into it, and the others go on.
  Row measure(uint32_t depth, uint32_t prompt, uint32_t answer) {
    Row row;
    row.test = prompt > 0 ? fmt::format("pp{}", prompt) : fmt::format("tg{}", answer);
    if (depth > 0) {
      row.test += fmt::format(" @ d{}", depth);
    }
    if (flags_.model.context != 0) {
      row.test += fmt::format(" c{}", flags_.model.context);
    }
    const Status status = fill(row, depth, prompt, answer);
    if (!status.ok()) {
      row.failure = status.error().to_string();
    }
    return row;
  }

 private:
  Status fill(Row& row, uint32_t depth, uint32_t prompt, uint32_t answer) {
    PTERO_ASSIGN_OR_RETURN(const auto session, llm::Session::create(model_));
    // Once to compile and plan; its logits are checked for NaN by the sampler.
    PTERO_RETURN_IF_ERROR(once(*session, nullptr, depth, prompt, std::min(answer, 4u)));
    for (uint32_t i = 0; i < flags_.repeat; ++i) {
      PTERO_RETURN_IF_ERROR(once(*session, &row, depth, prompt, answer));
    }
    return ok_status();
  }

  Status once(llm::Session& session, Row* row, uint32_t depth, uint32_t prompt, uint32_t answer) {
    const uint32_t vocabulary = model_->metadata().vocab_size;
    PTERO_RETURN_IF_ERROR(session.rewind(0));
    if (depth > 0) {
      const Result<llm::GenerationResult> filled = run(session, some_tokens(depth, vocabulary), 1);
      if (!filled.ok()) {
        return filled.error();
      }
    }
    const gpu::DeviceStats before = model_->device().stats();
    const uint64_t calls = session.method().operator_calls();
    const double cpu = cpu_seconds();
    const size_t fed = depth + (prompt > 0 ? prompt : 1);
    PTERO_ASSIGN_OR_RETURN(const llm::GenerationResult result,
                           run(session, some_tokens(fed, vocabulary), prompt > 0 ? 1 : answer + 1));
    if (row == nullptr) {
      return ok_status();
    }
    const gpu::DeviceStats& after = model_->device().stats();
    const double tokens = prompt > 0 ? prompt : answer;
    const double seconds = prompt > 0 ? result.prompt_time.count() : result.decode_time.count();
    row->rates.push_back(tokens / seconds);
    const double share = 1.0 / (tokens * flags_.repeat);
    row->cpu_seconds += (cpu_seconds() - cpu) * share;
    row->dispatches += static_cast<double>(after.dispatches - before.dispatches) * share;
    row->submits += static_cast<double>(after.submits - before.submits) * share;
    row->operator_calls += static_cast<double>(session.method().operator_calls() - calls) * share;
    row->bytes_read_back +=
        static_cast<double>(after.bytes_read_back - before.bytes_read_back) * share;
    return ok_status();
  }

  Result<llm::GenerationResult> run(llm::Session& session, std::vector<uint32_t> tokens,
                                    uint32_t count) {
    llm::GenerationOptions options;
    options.sampling.temperature = 0;
    options.ignore_end = true;
    options.max_tokens = count;
    options.on_token = [](const llm::TokenEvent&) { return !interrupted(); };
    PTERO_ASSIGN_OR_RETURN(const auto generation,
                           llm::Generation::start(session, std::move(tokens), std::move(options)));
    return wait_interruptibly(*generation);
  }

  const BenchFlags& flags_;
  std::shared_ptr<const llm::Model> model_;
};

// Kernels by their share of the GPU's time.
void print_kernels(const std::vector<gpu::KernelTime>& times, const std::string& title,
                   double tokens) {
  std::map<std::string_view, std::pair<size_t, double>> by_name;
  double total = 0;
  for (const gpu::KernelTime& time : times) {
    auto& [count, sum] = by_name[time.kernel];
    ++count;
    sum += 1e-6 * static_cast<double>(time.nanoseconds);
    total += 1e-6 * static_cast<double>(time.nanoseconds);
  }
  std::vector<std::pair<std::string_view, std::pair<size_t, double>>> rows(by_name.begin(),
                                                                           by_name.end());
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  fmt::print(
      "\nKernels of {} by GPU time, {:.3f} ms a token; profiled with a pass for each "
      "dispatch, which is slower than a run\n\n"
      "| kernel | dispatches/token | ms/token | share |\n|---|---:|---:|---:|\n",
      title, total / tokens);
  for (const auto& [name, figures] : rows) {
    fmt::print("| {} | {:.1f} | {:.4f} | {:.1f} % |\n", name,
               static_cast<double>(figures.first) / tokens, figures.second / tokens,
               100 * figures.second / std::max(total, 1e-9));
  }
}

Status print_profile(const BenchFlags& flags, std::shared_ptr<const llm::Model> model) {
  PTERO_ASSIGN_OR_RETURN(const auto session, llm::Session::create(model, {.profile = true}));
  const auto run = [&](uint32_t prompt, uint32_t answer) -> Status {
    PTERO_RETURN_IF_ERROR(session->rewind(0));
    session->method().clear_kernel_times();
    llm::GenerationOptions options;
    options.sampling.temperature = 0;
    options.ignore_end = true;
    options.max_tokens = answer;
    PTERO_ASSIGN_OR_RETURN(
        const auto generation,
        llm::Generation::start(*session, some_tokens(prompt, model->metadata().vocab_size),
                               std::move(options)));
    const Result<llm::GenerationResult> result = wait_interruptibly(*generation);
    return result.ok() ? ok_status() : Status(result.error());
  };
  const uint32_t prompt = std::max(1u, flags.prompts.empty() ? 1 : flags.prompts[0]);
  PTERO_RETURN_IF_ERROR(run(prompt, 1));  // once to compile
  PTERO_RETURN_IF_ERROR(run(prompt, 1));
  print_kernels(session->method().kernel_times(), fmt::format("pp{}", prompt), prompt);
  PTERO_RETURN_IF_ERROR(run(1, 2));
  PTERO_RETURN_IF_ERROR(run(1, 8));
  print_kernels(session->method().kernel_times(), "tg8", 8);
  return ok_status();
}

void print_markdown(const std::vector<Row>& rows) {
  fmt::print(
      "| test | t/s | CPU-s/token | dispatches/token | submits/token | operator calls/token "
      "| bytes read/token |\n|---|---:|---:|---:|---:|---:|---:|\n");
  for (const Row& row : rows) {
    if (!row.failure.empty()) {
      fmt::print("| {} | failed: {} | | | | | |\n", row.test, row.failure);
      continue;
    }
    fmt::print("| {} | {:.2f} ± {:.2f} | {:.4f} | {:.1f} | {:.2f} | {:.2f} | {:.0f} |\n", row.test,
               mean(row.rates), deviation(row.rates), row.cpu_seconds, row.dispatches, row.submits,
               row.operator_calls, row.bytes_read_back);
  }
}

void print_csv(const std::vector<Row>& rows) {
  fmt::print(
      "test,tokens_per_second,deviation,cpu_seconds_per_token,dispatches_per_token,"
      "submits_per_token,operator_calls_per_token,bytes_read_per_token,failed\n");
  for (const Row& row : rows) {
    fmt::print("{},{:.4f},{:.4f},{:.6f},{:.2f},{:.3f},{:.3f},{:.1f},{}\n", row.test,
               mean(row.rates), deviation(row.rates), row.cpu_seconds, row.dispatches, row.submits,
               row.operator_calls, row.bytes_read_back, row.failure.empty() ? 0 : 1);
  }
}

void print_json(const std::vector<Row>& rows, const BenchFlags& flags, const llm::Model& model,
                double load_seconds) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json entry = {{"test", row.test}, {"failed", !row.failure.empty()}};
    if (!row.failure.empty()) {
      entry["error"] = row.failure;
    } else {
      entry["tokens_per_second"] = mean(row.rates);
      entry["deviation"] = deviation(row.rates);
      entry["samples"] = row.rates;
      entry["cpu_seconds_per_token"] = row.cpu_seconds;
      entry["dispatches_per_token"] = row.dispatches;
      entry["submits_per_token"] = row.submits;
      entry["operator_calls_per_token"] = row.operator_calls;
      entry["bytes_read_back_per_token"] = row.bytes_read_back;
    }
    list.push_back(std::move(entry));
  }
  const gpu::DeviceStats& stats = model.device().stats();
  const nlohmann::ordered_json report = {{"model", flags.model.model},
                                         {"adapter", model.device().adapter().name},
                                         {"driver", model.device().adapter().driver},
                                         {"load_seconds", load_seconds},
                                         {"device_bytes_peak", stats.bytes_peak},
                                         {"host_bytes_peak", peak_host_bytes().value_or(0)},
                                         {"rows", std::move(list)}};
  fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

// All rows of a model as it is loaded.
std::vector<Row> measure_rows(const BenchFlags& flags, std::shared_ptr<const llm::Model> model) {
  std::vector<Row> rows;
  Bench bench(flags, std::move(model));
  for (const uint32_t depth : flags.depths) {
    for (const uint32_t prompt : flags.prompts) {
      if (prompt > 0) {
        rows.push_back(bench.measure(depth, prompt, 0));
      }
    }
    for (const uint32_t answer : flags.answers) {
      if (answer > 0) {
        rows.push_back(bench.measure(depth, 0, answer));
      }
    }
  }
  return rows;
}

Result<bool> bench(BenchFlags flags) {
  catch_interrupts();
  PTERO_REJECT_IF(flags.repeat == 0, invalid_argument, "-r (0) is not above 0.");
  std::vector<Row> rows;
  std::shared_ptr<const llm::Model> model;
  double load_seconds = 0;
  for (const uint32_t context : flags.contexts.empty() ? std::vector{0u} : flags.contexts) {
    flags.model.context = context;
    model = nullptr;  // one in the device's memory at a time
    const auto start = std::chrono::steady_clock::now();
    PTERO_ASSIGN_OR_RETURN(model, load_model(flags.model));
    load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::vector<Row> measured = measure_rows(flags, model);
    rows.insert(rows.end(), std::make_move_iterator(measured.begin()),
                std::make_move_iterator(measured.end()));
  }
  PTERO_REJECT_IF(interrupted(), cancelled, "Interrupted.");
  if (flags.output == "json") {
    print_json(rows, flags, *model, load_seconds);
  } else if (flags.output == "csv") {
    print_csv(rows);
  } else {
    fmt::print(
        "{} on {} ({}), loaded in {:.2f} s, device memory {:.1f} MiB at most, process {:.1f} "
        "MiB\n\n",
        flags.model.model, model->device().adapter().name, model->device().adapter().driver,
        load_seconds, static_cast<double>(model->device().stats().bytes_peak) / (1 << 20),
        static_cast<double>(peak_host_bytes().value_or(0)) / (1 << 20));
    print_markdown(rows);
    if (flags.profile) {
      PTERO_RETURN_IF_ERROR(print_profile(flags, model), "while profiling");
    }
  }
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.failure.empty(); });
}

}  // namespace

void add_bench(CLI::App& app, Outcome& outcome) {
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a language model is");
  auto flags = std::make_shared<BenchFlags>();
  add_model_flags(*command, flags->model);
  command->add_option("-p,--n-prompt", flags->prompts, "lengths of prompts (pp rows); 0: none")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-n,--n-gen", flags->answers, "lengths of answers (tg rows); 0: none")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-d,--n-depth", flags->depths, "tokens in the caches before a row starts")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("-c,--context,--ctx-size", flags->contexts,
                   "positions that the KV caches hold, a load of the model for each (default: as "
                   "the model has them)")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_option("-r,--repetitions", flags->repeat, "times that each row is measured")
      ->capture_default_str();
  command->add_flag("--profile", flags->profile, "kernels by their share of the GPU's time");
  command->add_option("-o,--output", flags->output, "md, json or csv")
      ->check(CLI::IsMember({"md", "json", "csv"}))
      ->capture_default_str();
  command->callback([flags, &outcome] {
    const Result<bool> passed = bench(*flags);
    if (!passed.ok()) {
      outcome.status = report(passed.error());
    } else if (!*passed) {
      outcome.status = 1;
    }
  });
}

}  // namespace ptero::cli
