// SPDX-License-Identifier: BSD-3-Clause
#include "convert/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "gguf/dequantize.h"

namespace ptero::convert {
namespace {

// Far above any model, and small enough that products of two fit in 64 bits.
constexpr uint64_t kMaxLayers = 4096;
constexpr uint64_t kMaxWidth = uint64_t{1} << 20;
constexpr uint64_t kMaxVocabulary = uint64_t{1} << 24;
constexpr uint64_t kMaxContext = uint64_t{1} << 24;

constexpr uint32_t kDefaultContext = 4096;
constexpr double kDefaultRopeBase = 10000;

struct Architecture {
  std::string_view name;
  bool rotate_halves;
};
// The GGUF writer reorders the queries and keys of llama so that neighbours are pairs.
constexpr std::array<Architecture, 3> kArchitectures = {
    {{"llama", false}, {"qwen2", true}, {"qwen3", true}}};

class ConfigReader {
 public:
  explicit ConfigReader(const gguf::File& file) : file_(file) {}

  Result<ModelConfig> read() {
    PTERO_RETURN_IF_ERROR(read_architecture());
    PTERO_RETURN_IF_ERROR(refuse_unsupported());
    PTERO_RETURN_IF_ERROR(read_sizes());
    PTERO_RETURN_IF_ERROR(read_vocabulary());
    PTERO_RETURN_IF_ERROR(read_rope());
    return std::move(out_);
  }

 private:
  std::string key(std::string_view name) const {
    return fmt::format("{}.{}", out_.architecture, name);
  }

  Status read_architecture() {
    PTERO_ASSIGN_OR_RETURN(const auto type, file_.text("general.type"));
    PTERO_REJECT_IF(type && *type != "model", unsupported,
                    "The GGUF file holds no model (general.type is {:?}).", *type);
    PTERO_ASSIGN_OR_RETURN(const auto name, file_.text("general.architecture"));
    PTERO_REJECT_IF(!name, invalid_program, "The key general.architecture is missing.");
    const auto found = std::ranges::find(kArchitectures, *name, &Architecture::name);
    std::vector<std::string_view> known;
    for (const Architecture& architecture : kArchitectures) {
      known.push_back(architecture.name);
    }
    PTERO_REJECT_IF(found == kArchitectures.end(), unsupported,
                    "The architecture {:?} cannot be converted; these can: {}.", *name,
                    fmt::join(known, ", "));
    out_.architecture = *name;
    out_.rotate_halves = found->rotate_halves;
    return ok_status();
  }

  Status refuse_unsupported() {
    PTERO_ASSIGN_OR_RETURN(const auto parts, file_.whole_number("split.count"));
    PTERO_REJECT_IF(parts.value_or(1) > 1, unsupported,
                    "The model is split into {} files (split.count), which cannot be converted; "
                    "merge them first.",
                    *parts);
    PTERO_ASSIGN_OR_RETURN(const auto experts, file_.whole_number(key("expert_count")));
    PTERO_REJECT_IF(experts.value_or(0) > 0, unsupported,
                    "The model mixes {} experts ({}), which cannot be converted.", *experts,
                    key("expert_count"));
    PTERO_ASSIGN_OR_RETURN(const auto causal, file_.boolean(key("attention.causal")));
    PTERO_REJECT_IF(!causal.value_or(true), unsupported,
                    "The model's attention is not causal ({}), which cannot be converted.",
                    key("attention.causal"));
    // Factors that other architectures put around parts of the same graph.
    for (const std::string_view name :
         {"logit_scale", "residual_scale", "embedding_scale", "attention.scale",
          "attn_logit_softcapping", "final_logit_softcapping", "attention.clamp_kqv"}) {
      PTERO_ASSIGN_OR_RETURN(const auto factor, file_.number(key(name)));
      PTERO_REJECT_IF(factor.value_or(0) != 0, unsupported,
                      "The model has a factor ({} is {}), which cannot be converted.", key(name),
                      *factor);
    }
    return ok_status();
  }

  Result<uint32_t> size(std::string_view name, uint64_t limit,
                        std::optional<uint64_t> otherwise = std::nullopt) {
    // Some files have a number for each layer where all are equal.
    PTERO_ASSIGN_OR_RETURN(auto number, whole_number_or_equal(key(name)));
    number = number ? number : otherwise;
    PTERO_REJECT_IF(!number, invalid_program, "The key {} is missing.", key(name));
    PTERO_REJECT_IF(*number == 0 || *number > limit, invalid_program,
                    "The value of {} ({}) does not lie between 1 and {}.", key(name), *number,
                    limit);
    return static_cast<uint32_t>(*number);
  }

  Result<std::optional<uint64_t>> whole_number_or_equal(const std::string& name) {
    const gguf::Value* value = file_.find(name);
    const auto* array = value ? std::get_if<gguf::Array>(&value->content) : nullptr;
    if (array == nullptr) {
      return file_.whole_number(name);
    }
    PTERO_REJECT_IF(array->count > kMaxLayers, invalid_program,
                    "The number of elements ({}) of {} exceeds the limit ({}).", array->count, name,
                    kMaxLayers);
    PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> items, gguf::integers_of(*array));
    PTERO_REJECT_IF(items.empty(), invalid_program, "The value of {} has no elements.", name);
    for (const int64_t item : items) {
      PTERO_REJECT_IF(item != items[0], unsupported,
                      "The value of {} differs between layers ({} and {}), which cannot be "
                      "converted.",
                      name, items[0], item);
    }
    PTERO_REJECT_IF(items[0] < 0, invalid_program, "The value of {} ({}) is negative.", name,
                    items[0]);
    return std::optional(static_cast<uint64_t>(items[0]));
  }

  Status read_sizes() {
    PTERO_ASSIGN_OR_RETURN(out_.layers, size("block_count", kMaxLayers));
    PTERO_ASSIGN_OR_RETURN(out_.width, size("embedding_length", kMaxWidth));
    PTERO_ASSIGN_OR_RETURN(out_.ffn_width, size("feed_forward_length", kMaxWidth));
    PTERO_ASSIGN_OR_RETURN(out_.trained_context, size("context_length", kMaxContext));
    PTERO_ASSIGN_OR_RETURN(out_.heads, size("attention.head_count", kMaxWidth));
    PTERO_ASSIGN_OR_RETURN(out_.kv_heads, size("attention.head_count_kv", kMaxWidth, out_.heads));
    PTERO_REJECT_IF(out_.heads % out_.kv_heads != 0, invalid_program,
                    "The number of heads ({}) is no multiple of the key-value heads ({}).",
                    out_.heads, out_.kv_heads);
    PTERO_ASSIGN_OR_RETURN(const auto length, file_.whole_number(key("attention.key_length")));
    PTERO_REJECT_IF(!length && out_.width % out_.heads != 0, invalid_program,
                    "The width ({}) is no multiple of the number of heads ({}).", out_.width,
                    out_.heads);
    PTERO_ASSIGN_OR_RETURN(out_.head_dim,
                           size("attention.key_length", kMaxWidth, out_.width / out_.heads));
    PTERO_ASSIGN_OR_RETURN(const uint32_t value_dim,
                           size("attention.value_length", kMaxWidth, out_.head_dim));
    PTERO_REJECT_IF(value_dim != out_.head_dim, unsupported,
                    "The sizes of keys ({}) and values ({}) differ, which cannot be converted.",
                    out_.head_dim, value_dim);
    PTERO_REJECT_IF(out_.head_dim % 4 != 0, unsupported,
                    "The size of a head ({}) is no multiple of 4, which cannot be converted.",
                    out_.head_dim);
    PTERO_REJECT_IF(uint64_t{out_.heads} * out_.head_dim > kMaxWidth, invalid_program,
                    "The heads ({} of {}) together exceed the limit ({}).", out_.heads,
                    out_.head_dim, kMaxWidth);
    PTERO_ASSIGN_OR_RETURN(const auto epsilon,
                           file_.number(key("attention.layer_norm_rms_epsilon")));
    PTERO_REJECT_IF(!epsilon, invalid_program, "The key {} is missing.",
                    key("attention.layer_norm_rms_epsilon"));
    PTERO_REJECT_IF(*epsilon < 0 || *epsilon > 1, invalid_program,
                    "The value of {} ({}) does not lie between 0 and 1.",
                    key("attention.layer_norm_rms_epsilon"), *epsilon);
    out_.norm_epsilon = static_cast<float>(*epsilon);
    return ok_status();
  }

  // The embedding knows it best; apply_weights() checks every tensor against it.
  Status read_vocabulary() {
    const gguf::TensorInfo* embedding = file_.find_tensor("token_embd.weight");
    PTERO_REJECT_IF(embedding == nullptr, invalid_program,
                    "The tensor token_embd.weight is missing.");
    const uint64_t rows = embedding->dims.size() < 2 ? 0 : embedding->dims[1];
    PTERO_REJECT_IF(rows == 0 || rows > kMaxVocabulary, invalid_program,
                    "The rows of token_embd.weight ({}) do not lie between 1 and {}.", rows,
                    kMaxVocabulary);
    out_.vocabulary = static_cast<uint32_t>(rows);
    return ok_status();
  }

  Status read_rope() {
    PTERO_ASSIGN_OR_RETURN(const uint32_t rotated,
                           size("rope.dimension_count", kMaxWidth, out_.head_dim));
    PTERO_REJECT_IF(rotated > out_.head_dim || rotated % 2 != 0, invalid_program,
                    "The value of {} ({}) is odd, or exceeds the size of a head ({}).",
                    key("rope.dimension_count"), rotated, out_.head_dim);
    PTERO_ASSIGN_OR_RETURN(const auto base, file_.number(key("rope.freq_base")));
    PTERO_REJECT_IF(base && *base <= 0, invalid_program, "The value of {} ({}) is not above 0.",
                    key("rope.freq_base"), *base);
    out_.frequencies = rope_frequencies(base.value_or(kDefaultRopeBase), rotated);

    PTERO_ASSIGN_OR_RETURN(const auto scaling, file_.text(key("rope.scaling.type")));
    const std::string kind = scaling.value_or("none");
    PTERO_REJECT_IF(kind != "none" && kind != "linear", unsupported,
                    "The model scales positions by {:?} ({}), which cannot be converted.", kind,
                    key("rope.scaling.type"));
    PTERO_ASSIGN_OR_RETURN(auto factor, file_.number(key("rope.scaling.factor")));
    if (!factor) {
      PTERO_ASSIGN_OR_RETURN(factor, file_.number(key("rope.scale_linear")));
    }
    if (kind == "linear" || (!scaling && factor)) {
      PTERO_REJECT_IF(!factor || *factor <= 0, invalid_program,
                      "The value of {} ({}) is not above 0.", key("rope.scaling.factor"),
                      factor.value_or(0));
      for (double& frequency : out_.frequencies) {
        frequency /= *factor;
      }
    }
    return read_rope_factors();
  }

  // Llama 3 lowers some frequencies, each by a factor of its own.
  Status read_rope_factors() {
    const gguf::TensorInfo* tensor = file_.find_tensor("rope_freqs.weight");
    for (const std::string_view name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
      PTERO_REJECT_IF(file_.find_tensor(name) != nullptr, unsupported,
                      "The model has factors of positions by length ({}), which cannot be "
                      "converted.",
                      name);
    }
    if (tensor == nullptr) {
      return ok_status();
    }
    PTERO_REJECT_IF(
        tensor->type != gguf::TensorType::f32 || tensor->elements != out_.frequencies.size(),
        invalid_program, "The tensor rope_freqs.weight has {} elements of {} instead of {} of F32.",
        tensor->elements, gguf::layout_of(tensor->type)->name, out_.frequencies.size());
    std::vector<float> factors(out_.frequencies.size());
    PTERO_RETURN_IF_ERROR(tensor->data.read(0, std::as_writable_bytes(std::span(factors))));
    for (size_t i = 0; i < factors.size(); ++i) {
      PTERO_REJECT_IF(!(factors[i] > 0) || !std::isfinite(factors[i]), invalid_program,
                      "Element {} ({}) of rope_freqs.weight is not above 0.", i, factors[i]);
      out_.frequencies[i] /= factors[i];
    }
    return ok_status();
  }

  const gguf::File& file_;
  ModelConfig out_;
};

}  // namespace

std::vector<double> rope_frequencies(double base, uint32_t rotated) {
  std::vector<double> frequencies;
  for (uint32_t i = 0; i < rotated / 2; ++i) {
    frequencies.push_back(std::pow(base, -2.0 * i / rotated));
  }
  return frequencies;
}

Result<ModelConfig> read_config(const gguf::File& file) {
  PTERO_ASSIGN_OR_RETURN(ModelConfig config, ConfigReader(file).read());
  return config;
}

Status apply_options(const ConvertOptions& options, ModelConfig& config) {
  PTERO_REJECT_IF(options.context && *options.context == 0, invalid_argument,
                  "The context (0) is below 1.");
  PTERO_REJECT_IF(options.context && *options.context > config.trained_context, invalid_argument,
                  "The context ({}) exceeds what the model was trained for ({}).", *options.context,
                  config.trained_context);
  config.context = options.context.value_or(std::min(config.trained_context, kDefaultContext));
  // One token a run needs a bound of 2, as the exporter counts.
  PTERO_REJECT_IF(options.max_seq < 2, invalid_argument, "The longest sequence ({}) is below 2.",
                  options.max_seq);
  PTERO_REJECT_IF(config.context < 2, invalid_argument, "The context ({}) is below 2.",
                  config.context);
  config.max_seq = std::min(options.max_seq, config.context);
  config.largest_context = config.trained_context;
  return ok_status();
}

Status check_window(const gguf::File& file, ModelConfig& config) {
  const std::string key = config.architecture + ".attention.sliding_window";
  PTERO_ASSIGN_OR_RETURN(const auto window, file.whole_number(key));
  // A window that nothing falls out of is none.
  PTERO_REJECT_IF(window && *window != 0 && *window < config.context, unsupported,
                  "The model sees only the last {} positions ({}), fewer than the context ({}); "
                  "choose a context of at most {}.",
                  *window, key, config.context, *window);
  if (window && *window != 0) {
    config.largest_context =
        static_cast<uint32_t>(std::min<uint64_t>(*window, config.largest_context));
  }
  return ok_status();
}

}  // namespace ptero::convert
