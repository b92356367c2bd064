// SPDX-License-Identifier: BSD-3-Clause
#include "convert/convert.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "convert/model_config.h"
#include "convert/model_graph.h"
#include "convert/program_parts.h"
#include "convert/tokenizer.h"
#include "convert/weight.h"

namespace ptero::convert {
namespace {

ConvertReport report_of(const ModelConfig& config, ModelGraph& model) {
  ConvertReport report;
  report.architecture = config.architecture;
  report.layers = config.layers;
  report.width = config.width;
  report.vocabulary = config.vocabulary;
  report.context = config.context;
  report.max_seq = config.max_seq;
  report.tied = model.tied;
  report.weights = std::move(model.weights);
  return report;
}

struct RandomShape {
  std::string_view name;
  uint32_t layers;
  uint32_t width;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  uint32_t ffn_width;
  uint32_t vocabulary;
  uint32_t trained_context;
  double rope_base;
  float norm_epsilon;
  bool tied;
};
constexpr RandomShape kRandomShapes[] = {
    {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, 8192, 100000, 1e-5f, true},
    {"llama-1b", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 500000, 1e-5f, true},
    {"llama-3b", 28, 3072, 24, 8, 128, 8192, 128256, 131072, 500000, 1e-5f, true},
    {"llama-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 500000, 1e-5f, false},
};

}  // namespace

Result<ConvertedProgram> convert_gguf(const gguf::File& file, const ConvertOptions& options) {
  PTERO_ASSIGN_OR_RETURN(ModelConfig config, read_config(file));
  PTERO_RETURN_IF_ERROR(apply_options(options, config));
  PTERO_RETURN_IF_ERROR(check_window(file, config));
  PTERO_ASSIGN_OR_RETURN(TokenizerFiles tokenizer, read_tokenizer(file, config.vocabulary));
  GgufWeights weights(file);
  PTERO_ASSIGN_OR_RETURN(ModelGraph model, make_model_graph(config, options, weights));
  PTERO_RETURN_IF_ERROR(weights.check_all_taken());

  std::vector<std::pair<std::string, std::string>> texts;
  ConvertReport report = report_of(config, model);
  report.tokenizer = tokenizer.tokenizer.has_value();
  report.chat_template = tokenizer.chat_template.has_value();
  if (tokenizer.tokenizer) {
    texts.emplace_back(kTokenizerKey, *std::move(tokenizer.tokenizer));
    texts.emplace_back(kTokenizerConfigKey, std::move(tokenizer.config));
  } else {
    report.notes.push_back(tokenizer.missing);
  }
  if (!tokenizer.note.empty()) {
    report.notes.push_back(tokenizer.note);
  }
  if (tokenizer.chat_template && !tokenizer.chat_template->empty()) {
    texts.emplace_back(kChatTemplateKey, *std::move(tokenizer.chat_template));
  }
  PTERO_ASSIGN_OR_RETURN(
      pte::Program program,
      make_program(config, model, options.weights == WeightFormat::f16,
                   {tokenizer.bos, std::move(tokenizer.ends)}, std::move(texts)));
  return ConvertedProgram{std::move(program), std::move(report)};
}

std::vector<std::string_view> random_model_names() {
  std::vector<std::string_view> names;
  for (const RandomShape& shape : kRandomShapes) {
    names.push_back(shape.name);
  }
  return names;
}

Result<ConvertedProgram> random_model(std::string_view name, const ConvertOptions& options) {
  const auto* shape = std::ranges::find(kRandomShapes, name, &RandomShape::name);
  PTERO_REJECT_IF(shape == std::end(kRandomShapes), invalid_argument,
                  "There is no random model {:?}; there are {}.", name,
                  fmt::join(random_model_names(), ", "));
  ModelConfig config;
  config.architecture = "llama";
  config.layers = shape->layers;
  config.width = shape->width;
  config.heads = shape->heads;
  config.kv_heads = shape->kv_heads;
  config.head_dim = shape->head_dim;
  config.ffn_width = shape->ffn_width;
  config.vocabulary = shape->vocabulary;
  config.trained_context = shape->trained_context;
  config.norm_epsilon = shape->norm_epsilon;
  config.frequencies = rope_frequencies(shape->rope_base, shape->head_dim);
  PTERO_RETURN_IF_ERROR(apply_options(options, config));
  std::set<std::string, std::less<>> optional;
  if (!shape->tied) {
    optional.insert("output.weight");
  }
  RandomWeights weights(std::move(optional));
  PTERO_ASSIGN_OR_RETURN(ModelGraph model, make_model_graph(config, options, weights));
  PTERO_ASSIGN_OR_RETURN(pte::Program program,
                         make_program(config, model, options.weights == WeightFormat::f16, {}, {}));
  return ConvertedProgram{std::move(program), report_of(config, model)};
}

}  // namespace ptero::convert
