// SPDX-License-Identifier: BSD-3-Clause
// `ptero convert`: a language model in a GGUF file becomes a .pte file. Needs no adapter.
#include "convert/convert.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/composed_source.h"
#include "base/file_output.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/evaluate.h"
#include "cli/gguf_model.h"
#include "cli/language_model.h"
#include "cli/program_file.h"
#include "cli/text_file.h"
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
  std::string evaluate;       // a text
  std::string evaluate_file;  // instead; a path
  GpuFlags gpu;               // to evaluate
};

std::atomic<bool> stops{false};

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
  static void handle(int) { stops = true; }
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
      fmt::print(stderr, "{} % of {:.1f} MiB\n", 10 * tenth, mebibytes(size_));
    }
  }

 private:
  static constexpr uint64_t kLarge = uint64_t{32} << 20;
  uint64_t size_;
  uint64_t shown_ = 0;
};

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
  fmt::print("  context {}, at most {} tokens a run\n", report.context, report.max_seq);
  fmt::print("  {} weights, {} of them exact, {} rounded\n", report.weights.size(), exact,
             report.weights.size() - exact);
  fmt::print("  tokenizer: {}, chat template: {}\n", report.tokenizer ? "yes" : "no",
             report.chat_template ? "yes" : "no");
  fmt::print("  {:.1f} MiB in {:.1f} s\n", mebibytes(bytes), seconds);
}

// Against the same conversion with f32 weights, or f16 where the device has no room for these.
Status evaluate_output(const ConvertFlags& flags, const gpu::Device& device,
                       const std::string& text) {
  catch_interrupts();
  PTERO_ASSIGN_OR_RETURN(const std::shared_ptr<const ProgramFile> file,
                         open_program(flags.output, {}));
  const std::shared_ptr<const pte::Program> model(file, &file->program);
  ConvertFlags exact = flags;
  exact.head.clear();
  for (const char* const format : {"f32", "f16"}) {
    exact.weights = format;
    PTERO_ASSIGN_OR_RETURN(ConvertedProgram converted, make(exact));
    const Result<Evaluation> found = evaluate(
        device, model, std::make_shared<const pte::Program>(std::move(converted.program)), text);
    if (!found.ok()) {
      const ErrorCode code = found.error().code();
      const bool too_large = code == ErrorCode::out_of_memory || code == ErrorCode::unsupported;
      if (too_large && format == std::string_view("f32")) {
        continue;
      }
      return found.error();
    }
    fmt::print("  evaluated on {} tokens{}, against {} weights:\n", found->tokens,
               found->tokens < found->of_text
                   ? fmt::format(" (of {}; the context is full)", found->of_text)
                   : "",
               format);
    fmt::print("    same most likely next token: {} ({:.1f} %)\n", found->same_top,
               100 * static_cast<double>(found->same_top) / static_cast<double>(found->tokens));
    fmt::print("    KL divergence: {:.4f} nats a token, {:.4f} at most\n", found->divergence,
               found->largest_divergence);
    fmt::print("    perplexity: {:.3f}, before {:.3f}\n", found->perplexity,
               found->reference_perplexity);
    return ok_status();
  }
  return ok_status();
}

Status run(const ConvertFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  // What is wrong with the evaluation is better said before the conversion.
  const bool evaluates = !flags.evaluate.empty() || !flags.evaluate_file.empty();
  std::string text = flags.evaluate;
  std::optional<gpu::Device> device;
  if (evaluates) {
    PTERO_REJECT_IF(!flags.random.empty(), invalid_argument,
                    "--evaluate needs a GGUF file: a random model has no tokenizer.");
    PTERO_REJECT_IF(!flags.evaluate.empty() && !flags.evaluate_file.empty(), invalid_argument,
                    "Only one of --evaluate and --evaluate-file can be given.");
    if (!flags.evaluate_file.empty()) {
      PTERO_ASSIGN_OR_RETURN(text, read_text_file(flags.evaluate_file));
    }
    PTERO_ASSIGN_OR_RETURN(device, open_device(flags.gpu));
  }
  PTERO_ASSIGN_OR_RETURN(const ConvertedProgram converted, make(flags));
  for (const std::string& note : converted.report.notes) {
    fmt::print(stderr, "ptero: {}\n", note);
  }
  PTERO_ASSIGN_OR_RETURN(ByteSourcePtr bytes, pte::assemble_program(converted.program));
  std::optional<InterruptScope> scope(std::in_place);
  Progress progress(bytes->size());
  const ByteSourcePtr watched =
      generate_bytes(bytes->size(), [&](uint64_t offset, std::span<std::byte> out) -> Status {
        PTERO_REJECT_IF(stops, cancelled, "The conversion is interrupted.");
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
  scope.reset();
  return device ? evaluate_output(flags, *device, text) : ok_status();
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
  command->add_option("--max-seq", flags->max_seq, "tokens that a run takes at most")
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
  command
      ->add_option("--evaluate", flags->evaluate,
                   "afterwards feed this text to the model, and say how far it is from the one "
                   "whose weights were not rounded (needs an adapter)")
      ->type_name("TEXT");
  command->add_option("--evaluate-file", flags->evaluate_file, "the same with a file's text")
      ->type_name("FILE");
  add_gpu_flags(*command, flags->gpu);
  command->callback([flags, &outcome] {
    if (const Status status = run(*flags); !status.ok()) {
      outcome.status = report(status.error());
    }
  });
}

}  // namespace ptero::cli
