// SPDX-License-Identifier: BSD-3-Clause
// A language model in a GGUF file -> the program that ExecuTorch's Llama exporter would write for
// it
// (`-V -kv --use_sdpa_with_kv_cache`, `-qmode 4w -G 32` for 4-bit weights), so that it runs here
// and everywhere such programs run:
//   forward(tokens int64 [1, S], input_pos int64 [1]) -> float32 [1, vocabulary], the last token's
// and methods that return constants (get_max_seq_len, get_eos_ids and so on).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "pte/program.h"

namespace ptero::convert {

// Rises with every change of what convert_gguf() makes of a file: programs that are kept carry it
// in their names (program_cache.h). A test holds it to the bytes.
inline constexpr uint32_t kConverterVersion = 3;

enum class WeightFormat {
  q4,   // 4-bit groups of 32; Q4_0 weights keep their bits
  f16,  // half precision throughout, as from `--vulkan-force-fp16`
  f32,
};

struct ConvertOptions {
  // Positions that the caches hold; none: what the model was trained for, at most 4096.
  std::optional<uint32_t> context;
  // Most tokens of one run; at most the context.
  uint32_t max_seq = 512;
  WeightFormat weights = WeightFormat::q4;
  // With 4-bit weights, the head in float32: nearer to a file that keeps its head finer, at eight
  // times the bytes a token reads of it. A tied embedding stays 4-bit and is then stored besides.
  bool float_head = false;
  unsigned threads = 0;  // 0: as many as there are cores
};

// One weight, for reports.
struct ConvertedWeight {
  std::string name;
  std::string from;  // "Q6_K"
  std::string to;    // "4-bit", "f16", "f32"
  bool exact = false;
  uint64_t bytes = 0;  // in the program, scales included
};

struct ConvertReport {
  std::string architecture;
  uint32_t layers = 0;
  uint32_t width = 0;
  uint32_t vocabulary = 0;
  uint32_t context = 0;
  uint32_t max_seq = 0;
  bool tied = false;       // head and embedding are one weight
  bool tokenizer = false;  // the program carries one
  bool chat_template = false;
  std::vector<ConvertedWeight> weights;
  std::vector<std::string> notes;  // what the user may want to know, one sentence each
};

// The bytes of the weights are made when they are read: the program is ready at once, whatever the
// size of the model, and pte::assemble_program() and write_file() stream it. It keeps the source of
// the GGUF file alive.
struct ConvertedProgram {
  pte::Program program;
  ConvertReport report;
};

// Keys of named data for whoever turns text into tokens.
inline constexpr std::string_view kTokenizerKey = "ptero.tokenizer.json";
inline constexpr std::string_view kTokenizerConfigKey = "ptero.tokenizer_config.json";
inline constexpr std::string_view kChatTemplateKey = "ptero.chat_template.jinja";

// Architectures llama, qwen2 and qwen3. Code unsupported, with the name of what is in the way, for
// another one, experts, YaRN, sliding windows shorter than the context and split files; code
// invalid_program when tensors or keys are missing or contradict each other; code invalid_argument
// for options that cannot be.
Result<ConvertedProgram> convert_gguf(const gguf::File& file, const ConvertOptions& options);

// The names random_model() takes.
std::vector<std::string_view> random_model_names();

// A model of a known shape with weights from a counter, to measure with; no tokenizer.
Result<ConvertedProgram> random_model(std::string_view name, const ConvertOptions& options);

}  // namespace ptero::convert
