// SPDX-License-Identifier: BSD-3-Clause
// `ptero convert`: a language model in a GGUF file becomes a .pte file. Needs no adapter.
#include "convert/convert.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/composed_source.h"
#include "base/file_output.h"
#include "cli/cli.h"
#include "gguf/reader.h"
#include "pte/program_writer.h"

namespace ptero::cli {
namespace {

using convert::ConvertedProgram;
using convert::ConvertReport;
using convert::WeightFormat;

struct ConvertFlags {
  std::string input;
  std::string random;
  std::string output;
  uint32_t context = 0;  // 0: not given
  uint32_t max_seq = convert::ConvertOptions().max_seq;
  std::string weights = "q4";
  std::string head;  // as the others
  bool report = false;
};

std::atomic<bool> interrupted{false};

// Ctrl-C ends the writing, and write_file() then takes the unfinished file away.
class InterruptScope {
 public:
  InterruptScope()
      : before_int_(std::signal(SIGINT, handle)), before_term_(std::signal(SIGTERM, handle)) {}
  ~InterruptScope() {
    std::signal(SIGINT, before_int_);
    std::signal(SIGTERM, before_term_);
  }
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  static void handle(int) { interrupted = true; }
  void (*before_int_)(int);
  void (*before_term_)(int);
};

// A line on stderr each time another tenth of a large file is written.
class Progress {
 public:
  explicit Progress(uint64_t size) : size_(size) {}

  void reached(uint64_t offset) {
    const uint64_t tenth = offset / (size_ / 10 + 1);
    if (tenth > shown_ && size_ >= kLarge) {
      shown_ = tenth;
      fmt::print(stderr, "{} % of {:.1f} MiB\n", 10 * tenth,
                 static_cast<double>(size_) / (1 << 20));
    }
  }

 private:
  static constexpr uint64_t kLarge = uint64_t{32} << 20;
  uint64_t size_;
  uint64_t shown_ = 0;
};

Result<WeightFormat> weight_format(const std::string& name) {
  if (name == "q4") {
    return WeightFormat::q4;
  }
  if (name == "f16") {
    return WeightFormat::f16;
  }
  PTERO_REJECT_IF(name != "f32", invalid_argument, "--weights ({}) is none of q4, f16 and f32.",
                  name);
  return WeightFormat::f32;
}

Result<ConvertedProgram> make(const ConvertFlags& flags) {
  PTERO_REJECT_IF(flags.input.empty() == flags.random.empty(), invalid_argument,
                  "One of a GGUF file and --random says what to convert.");
  convert::ConvertOptions options;
  PTERO_ASSIGN_OR_RETURN(options.weights, weight_format(flags.weights));
  PTERO_REJECT_IF(!flags.head.empty() && flags.head != "q4" && flags.head != "f32",
                  invalid_argument, "--head ({}) is neither q4 nor f32.", flags.head);
  PTERO_REJECT_IF(!flags.head.empty() && options.weights != WeightFormat::q4, invalid_argument,
                  "--head ({}) is for q4 weights; these are {}.", flags.head, flags.weights);
  options.float_head = flags.head == "f32";
  if (flags.context != 0) {
    options.context = flags.context;
  }
  options.max_seq = flags.max_seq;
  if (!flags.random.empty()) {
    return convert::random_model(flags.random, options);
  }
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr source, map_file(flags.input));
  PTERO_ASSIGN_OR_RETURN(const gguf::File file, gguf::read_gguf(ByteRange::whole(source)),
                         "while reading {}", flags.input);
  PTERO_ASSIGN_OR_RETURN(ConvertedProgram converted, convert::convert_gguf(file, options),
                         "while converting {}", flags.input);
  return converted;
}

void print_weights(const ConvertReport& report) {
  for (const convert::ConvertedWeight& weight : report.weights) {
    fmt::print("  {:<28} {:>6} -> {:<5} {:>12} bytes{}\n", weight.name, weight.from, weight.to,
               weight.bytes, weight.exact ? "  exact" : "");
  }
}

void print_summary(const ConvertReport& report, const std::string& output, uint64_t bytes,
                   double seconds) {
  uint64_t exact = 0;
  for (const convert::ConvertedWeight& weight : report.weights) {
    exact += weight.exact ? 1 : 0;
  }
  fmt::print("{}: {}, {} layers of width {}, vocabulary {}{}\n", output, report.architecture,
             report.layers, report.width, report.vocabulary,
             report.tied ? ", head tied to the embedding" : "");
  fmt::print("  context {}, at most {} tokens a run\n", report.context, report.max_seq - 1);
  fmt::print("  {} weights, {} of them exact, {} rounded\n", report.weights.size(), exact,
             report.weights.size() - exact);
  fmt::print("  tokenizer: {}, chat template: {}\n", report.tokenizer ? "yes" : "no",
             report.chat_template ? "yes" : "no");
  fmt::print("  {:.1f} MiB in {:.1f} s\n", static_cast<double>(bytes) / (1 << 20), seconds);
}

Status run(const ConvertFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  PTERO_ASSIGN_OR_RETURN(const ConvertedProgram converted, make(flags));
  for (const std::string& note : converted.report.notes) {
    fmt::print(stderr, "ptero: {}\n", note);
  }
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr bytes, pte::assemble_program(converted.program));
  const InterruptScope scope;
  Progress progress(bytes->size());
  const ByteSourcePtr watched =
      generate_bytes(bytes->size(), [&](uint64_t offset, std::span<std::byte> out) -> Status {
        PTERO_REJECT_IF(interrupted, cancelled, "The conversion is interrupted.");
        PTERO_RETURN_IF_ERROR(bytes->read(offset, out));
        progress.reached(offset + out.size());
        return ok_status();
      });
  PTERO_RETURN_IF_ERROR(write_file(flags.output, *watched));
  if (flags.report) {
    print_weights(converted.report);
  }
  print_summary(converted.report, flags.output, bytes->size(),
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return ok_status();
}

}  // namespace

void add_convert(CLI::App& app, Outcome& outcome) {
  CLI::App* command =
      app.add_subcommand("convert", "Make a .pte file of a language model in a GGUF file");
  auto flags = std::make_shared<ConvertFlags>();
  command->add_option("model", flags->input, "the .gguf file")->type_name("MODEL");
  command->add_option("-o,--output", flags->output, "the .pte file to write")
      ->required()
      ->type_name("FILE.pte");
  command
      ->add_option("--context", flags->context,
                   "positions that the caches hold (default: what the model was trained for, at "
                   "most 4096)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command
      ->add_option("--max-seq", flags->max_seq, "one more than the tokens that a run takes at most")
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--weights", flags->weights,
                   "q4 (4-bit groups of 32), f16 (half precision throughout) or f32")
      ->capture_default_str()
      ->type_name("FORMAT");
  command
      ->add_option("--head", flags->head,
                   "with q4 weights, the matrix that makes the logits: q4 (default) or f32, which "
                   "is finer and takes eight times the memory")
      ->type_name("FORMAT");
  command
      ->add_option("--random", flags->random,
                   fmt::format("instead of a file, random weights in the shape of {}",
                               fmt::join(convert::random_model_names(), ", ")))
      ->type_name("NAME");
  command->add_flag("--report", flags->report, "list every weight and what became of it");
  command->callback([flags, &outcome] {
    if (const Status status = run(*flags); !status.ok()) {
      outcome.status = report(status.error());
    }
  });
}

}  // namespace ptero::cli
