// SPDX-License-Identifier: BSD-3-Clause
// `ptero bench`: how fast a language model is, in llama-bench's terms. A row is a prompt (pp) or an
// answer (tg), repeated.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/process_memory.h"
#include "cli/bench_report.h"
#include "cli/cli.h"
#include "cli/language_model.h"
#include "cli/trace.h"
#include "gpu/pass_times.h"

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
  bool memory = false;
  std::string trace;
};

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

llm::GenerationOptions greedy(uint32_t count) {
  llm::GenerationOptions options;
  options.sampling.temperature = 0;
  options.ignore_end = true;
  options.max_tokens = count;
  options.on_token = [](const llm::TokenEvent&) { return !interrupted(); };
  return options;
}

enum class Run : uint8_t {
  warm_up,  // compiles and plans
  timed,    // by the host's clock
  stamped,  // by the GPU's, with a time stamp before and after every pass
};

class Bench {
 public:
  Bench(const BenchFlags& flags, std::shared_ptr<const llm::Model> model, Trace& trace)
      : flags_(flags),
        model_(std::move(model)),
        device_(model_->device()),
        trace_(trace),
        has_stamps_(device_.features().contains(gpu::Feature::timestamps)) {}

  // One row; what fails is written into it, and the others go on.
  BenchRow measure(uint32_t depth, uint32_t prompt, uint32_t answer) {
    BenchRow row;
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

  // The kernels of a prompt and of an answer, each dispatch in a pass of its own.
  Result<std::vector<BenchProfile>> profile() {
    PTERO_ASSIGN_OR_RETURN(const auto session, llm::Session::create(model_, {.profile = true}));
    const uint32_t prompt = std::max(1u, flags_.prompts.empty() ? 1 : flags_.prompts[0]);
    constexpr uint32_t kAnswer = 8;
    std::vector<BenchProfile> profiles;
    for (const bool of_prompt : {true, false}) {
      const std::string test =
          of_prompt ? fmt::format("pp{}", prompt) : fmt::format("tg{}", kAnswer);
      for (const Run purpose : {Run::warm_up, Run::stamped}) {
        PTERO_RETURN_IF_ERROR(session->rewind(0));
        session->method().clear_kernel_times();
        PTERO_RETURN_IF_ERROR(run(*session, "profiled " + test, of_prompt ? prompt : 1,
                                  of_prompt ? 1 : kAnswer, purpose));
      }
      profiles.push_back(
          make_profile(test, session->method().kernel_times(), of_prompt ? prompt : kAnswer));
    }
    return profiles;
  }

 private:
  Status fill(BenchRow& row, uint32_t depth, uint32_t prompt, uint32_t answer) {
    PTERO_ASSIGN_OR_RETURN(const auto session, llm::Session::create(model_));
    // Once to compile and plan, and once more, as a GPU that waited for the compiler is slow to
    // reach its clock. Logits are checked for NaN by the sampler, and a GPU error shows in its
    // readbacks.
    for (int i = 0; i < 2; ++i) {
      PTERO_RETURN_IF_ERROR(once(*session, row, depth, prompt, std::min(answer, 4u), Run::warm_up));
    }
    for (uint32_t i = 0; i < flags_.repeat; ++i) {
      PTERO_RETURN_IF_ERROR(once(*session, row, depth, prompt, answer, Run::timed));
    }
    // Time stamps cost a fast GPU a fifth of its speed: they get a repetition of their own.
    return has_stamps_ ? once(*session, row, depth, prompt, answer, Run::stamped) : ok_status();
  }

  Status once(llm::Session& session, BenchRow& row, uint32_t depth, uint32_t prompt,
              uint32_t answer, Run purpose) {
    PTERO_RETURN_IF_ERROR(session.rewind(0));
    if (depth > 0) {
      PTERO_RETURN_IF_ERROR(run(session, "depth", depth, 1, Run::warm_up));
    }
    const gpu::DeviceStats before = device_.stats();
    const uint64_t calls = session.method().operator_calls();
    const double cpu = cpu_seconds();
    PTERO_ASSIGN_OR_RETURN(const Measured measured,
                           run(session, row.test, depth + (prompt > 0 ? prompt : 1),
                               prompt > 0 ? 1 : answer + 1, purpose));
    // The token that an answer starts from is computed like the others.
    const double tokens = prompt > 0 ? prompt : answer + 1;
    if (purpose == Run::stamped) {
      row.gpu_seconds = measured.gpu_seconds / tokens;
    }
    if (purpose != Run::timed) {
      return ok_status();
    }
    const gpu::DeviceStats& after = measured.stats;
    row.rates.push_back(prompt > 0 ? prompt / measured.result.prompt_time.count()
                                   : answer / measured.result.decode_time.count());
    row.first_token.push_back(measured.result.prompt_time.count());
    const double share = 1 / (tokens * flags_.repeat);
    row.cpu_seconds += (measured.cpu_seconds - cpu) * share;
    row.dispatches += static_cast<double>(after.dispatches - before.dispatches) * share;
    row.submits += static_cast<double>(after.submits - before.submits) * share;
    row.operator_calls += static_cast<double>(session.method().operator_calls() - calls) * share;
    row.bytes_read_back +=
        static_cast<double>(after.bytes_read_back - before.bytes_read_back) * share;
    return ok_status();
  }

  struct Measured {
    llm::GenerationResult result;
    gpu::DeviceStats stats;  // at its end, as the next
    double cpu_seconds = 0;
    double gpu_seconds = 0;
  };

  // Feeds `fed` tokens in all and generates `count`. All but a warm-up is traced.
  Result<Measured> run(llm::Session& session, const std::string& name, uint32_t fed, uint32_t count,
                       Run purpose) {
    llm::GenerationOptions options = greedy(count);
    Trace::Clock::time_point begin;
    Trace::Clock::time_point last;
    const auto step = [&](std::string what) {
      if (purpose != Run::warm_up) {
        const auto now = Trace::Clock::now();
        trace_.add(Trace::Track::steps, std::move(what), std::exchange(last, now), now);
      }
      return !interrupted();
    };
    options.on_prompt = [&](size_t done, size_t total) {
      return step(fmt::format("prompt {} of {} submitted", done, total));
    };
    size_t token = 0;
    options.on_token = [&](const llm::TokenEvent&) {
      return step(fmt::format("token {}", ++token));
    };
    if (purpose == Run::stamped) {
      PTERO_RETURN_IF_ERROR(gpu::start_pass_times(device_));
    }
    begin = last = Trace::Clock::now();
    PTERO_ASSIGN_OR_RETURN(
        const auto generation,
        llm::Generation::start(session, some_tokens(fed, model_->metadata().vocab_size),
                               std::move(options)));
    Measured measured;
    PTERO_ASSIGN_OR_RETURN(measured.result, wait_interruptibly(*generation));
    const auto end = Trace::Clock::now();
    measured.stats = device_.stats();
    measured.cpu_seconds = cpu_seconds();
    PTERO_REJECT_IF(interrupted(), cancelled, "Interrupted.");
    if (purpose != Run::warm_up) {
      trace_.add(Trace::Track::rows, purpose == Run::stamped ? name + " with time stamps" : name,
                 begin, end);
    }
    if (purpose == Run::stamped) {
      PTERO_ASSIGN_OR_RETURN(const std::vector<gpu::PassTime> times,
                             gpu::wait_for(gpu::take_pass_times(device_)));
      for (const gpu::PassTime& time : times) {
        measured.gpu_seconds += 1e-9 * static_cast<double>(time.end - time.begin);
      }
      trace_.add_gpu(times, begin, end);
    }
    return measured;
  }

  const BenchFlags& flags_;
  std::shared_ptr<const llm::Model> model_;
  gpu::Device device_;
  Trace& trace_;
  bool has_stamps_;
};

// Loads the model, and measures all rows of it.
Status measure_model(const BenchFlags& flags, Trace& trace, BenchReport& report) {
  const auto start = Trace::Clock::now();
  PTERO_ASSIGN_OR_RETURN(const auto model, load_model(flags.model));
  const auto loaded = Trace::Clock::now();
  trace.add(Trace::Track::rows, "load", start, loaded);
  report.adapter = model->device().adapter().name;
  report.driver = model->device().adapter().driver;
  report.load_seconds = std::chrono::duration<double>(loaded - start).count();
  Bench bench(flags, model, trace);
  for (const uint32_t depth : flags.depths) {
    for (const uint32_t prompt : flags.prompts) {
      if (prompt > 0) {
        report.rows.push_back(bench.measure(depth, prompt, 0));
      }
    }
    for (const uint32_t answer : flags.answers) {
      if (answer > 0) {
        report.rows.push_back(bench.measure(depth, 0, answer));
      }
    }
  }
  PTERO_REJECT_IF(interrupted(), cancelled, "Interrupted.");
  report.device_bytes_peak = model->device().stats().bytes_peak;
  report.host_bytes_peak = peak_host_bytes().value_or(0);
  // A device that was lost has failed its rows already.
  if (const auto session = llm::Session::create(model); session.ok()) {
    report.memory = (*session)->method().memory();
  }
  if (flags.profile) {
    PTERO_ASSIGN_OR_RETURN(std::vector<BenchProfile> profiles, bench.profile(), "while profiling");
    std::move(profiles.begin(), profiles.end(), std::back_inserter(report.profiles));
  }
  return ok_status();
}

Result<bool> bench(BenchFlags flags) {
  catch_interrupts();
  PTERO_REJECT_IF(flags.repeat == 0, invalid_argument, "-r (0) is not above 0.");
  PTERO_REJECT_IF(flags.profile && flags.output == "csv", invalid_argument,
                  "--profile needs -o md or json: a table of kernels is no row of a CSV file.");
  Trace trace;
  BenchReport report;
  report.model = flags.model.model;
  report.show_memory = flags.memory;
  Status measured;
  // One model in the device's memory at a time.
  for (const uint32_t context : flags.contexts.empty() ? std::vector{0u} : flags.contexts) {
    flags.model.context = context;
    measured = measure_model(flags, trace, report);
    if (!measured.ok()) {
      break;
    }
  }
  if (report.rows.empty() || interrupted()) {
    PTERO_RETURN_IF_ERROR(std::move(measured));
  }
  print_report(report, flags.output);
  if (!flags.trace.empty()) {
    PTERO_RETURN_IF_ERROR(trace.write(flags.trace), "while writing the trace");
  }
  PTERO_RETURN_IF_ERROR(std::move(measured));
  return std::all_of(report.rows.begin(), report.rows.end(),
                     [](const BenchRow& row) { return row.failure.empty(); });
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
  command->add_flag("--memory", flags->memory,
                    "show what the device's memory was used for; JSON always does");
  command
      ->add_option("--trace", flags->trace,
                   "write what happened when, for Perfetto (ui.perfetto.dev); with --profile also "
                   "every kernel")
      ->type_name("FILE.json");
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
