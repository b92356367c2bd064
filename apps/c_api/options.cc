// SPDX-License-Identifier: BSD-3-Clause
// Options by key: the flags of the command line.
#include <charconv>
#include <functional>
#include <random>
#include <span>

#include <fmt/ranges.h>

#include "c_api/handles.h"

namespace ptero::c_api {
namespace {

using Setter = std::function<Status(ptero_options&, const std::string&)>;

struct Key {
  std::string_view name;
  std::string_view help;
  Setter set;
};

template <typename Number>
Status read_number(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  PTERO_REJECT_IF(error != std::errc() || stop != end, invalid_argument,
                  "Value ({}) is not a number of this kind.", text);
  return ok_status();
}

Status read_flag(const std::string& text, bool& flag) {
  PTERO_REJECT_IF(text != "true" && text != "false", invalid_argument,
                  "Value ({}) is neither true nor false.", text);
  flag = text == "true";
  return ok_status();
}

Setter text_to(std::string ptero_options::* member) {
  return [member](ptero_options& options, const std::string& value) {
    options.*member = value;
    return ok_status();
  };
}

// A number of llm::SamplingOptions, checked as soon as it is set.
template <typename Number>
Setter sampling(Number llm::SamplingOptions::* member) {
  return [member](ptero_options& options, const std::string& value) -> Status {
    llm::SamplingOptions changed = options.generation.sampling;
    PTERO_RETURN_IF_ERROR(read_number(value, changed.*member));
    PTERO_RETURN_IF_ERROR(llm::check(changed));
    options.generation.sampling = std::move(changed);
    return ok_status();
  };
}

Status set_disabled(ptero_options& options, const std::string& value) {
  gpu::FeatureSet features;
  for (size_t start = 0; start < value.size();) {
    const size_t comma = std::min(value.find(',', start), value.size());
    PTERO_ASSIGN_OR_RETURN(
        const gpu::Feature feature,
        gpu::parse_feature(std::string_view(value).substr(start, comma - start)));
    features.insert(feature);
    start = comma + 1;
  }
  options.disabled = features;
  return ok_status();
}

Status set_predict(ptero_options& options, const std::string& value) {
  int64_t count = 0;
  PTERO_RETURN_IF_ERROR(read_number(value, count));
  PTERO_REJECT_IF(count < -1 || count == 0 || count > UINT32_MAX, invalid_argument,
                  "Value ({}) is neither -1 nor a number of tokens.", value);
  options.generation.max_tokens = count < 0 ? UINT32_MAX : static_cast<uint32_t>(count);
  return ok_status();
}

Status set_seed(ptero_options& options, const std::string& value) {
  if (value == "-1") {
    options.seed.reset();
    return ok_status();
  }
  uint64_t seed = 0;
  PTERO_RETURN_IF_ERROR(read_number(value, seed));
  options.seed = seed;
  return ok_status();
}

Status add_bias(ptero_options& options, const std::string& value) {
  PTERO_ASSIGN_OR_RETURN(const auto bias, llm::parse_logit_bias(value));
  options.generation.sampling.logit_bias.push_back(bias);
  return ok_status();
}

const std::vector<Key>& keys() {
  using Options = ptero_options;
  using Sampling = llm::SamplingOptions;
  static const std::vector<Key> list = {
      {"adapter", "its number or a part of its name, or discrete, integrated, cpu",
       text_to(&Options::adapter)},
      {"disable",
       "features to leave off, with commas: shader-f16, subgroups, subgroup-matrix, "
       "packed-dot, timestamps, immediates",
       set_disabled},
      {"no-robustness", "true leaves out the bounds checks of shaders",
       [](Options& options, const std::string& value) {
         return read_flag(value, options.no_robustness);
       }},
      {"max-binding", "plan as if the adapter's bindings held no more bytes",
       [](Options& options, const std::string& value) {
         return read_number(value, options.caps.max_storage_binding_size);
       }},
      {"max-buffer", "refuse models as if the adapter's buffers held no more bytes",
       [](Options& options, const std::string& value) {
         return read_number(value, options.caps.max_buffer_size);
       }},
      {"data", "a .ptd file with external tensors; each use adds one",
       [](Options& options, const std::string& value) {
         options.data.push_back(value);
         return ok_status();
       }},
      {"method", "method to load", text_to(&Options::method)},
      {"ctx-size", "positions that the KV caches hold; 0: as the model has them",
       [](Options& options, const std::string& value) {
         return read_number(value, options.plan.context);
       }},
      {"tokenizer", "file; otherwise the model's own", text_to(&Options::tokenizer)},
      {"chat-template-file", "Jinja file; otherwise the model's own",
       text_to(&Options::chat_template)},
      {"chat-template-kwargs", "JSON object with variables of the chat template",
       text_to(&Options::chat_template_kwargs)},
      {"n-predict", "tokens at most; -1: until the model ends", set_predict},
      {"temp", "temperature; 0 is greedy", sampling(&Sampling::temperature)},
      {"top-k", "the most likely so many; 0: all", sampling(&Sampling::top_k)},
      {"top-p", "the smallest set with this probability; 1: off", sampling(&Sampling::top_p)},
      {"min-p", "this fraction of the most likely; 0: off", sampling(&Sampling::min_p)},
      {"repeat-penalty", "1: off", sampling(&Sampling::repeat_penalty)},
      {"repeat-last-n", "tokens that penalties look back at", sampling(&Sampling::repeat_last_n)},
      {"frequency-penalty", "0: off", sampling(&Sampling::frequency_penalty)},
      {"presence-penalty", "0: off", sampling(&Sampling::presence_penalty)},
      {"seed", "the same seed gives the same answer; -1: random", set_seed},
      {"logit-bias", "changes a token's logit, such as 15043-1; each use adds one", add_bias},
      {"reverse-prompt", "ends the answer before this text; each use adds one",
       [](Options& options, const std::string& value) {
         options.generation.stop.push_back(value);
         return ok_status();
       }},
      {"ignore-eos", "true goes on after the model's end token",
       [](Options& options, const std::string& value) {
         return read_flag(value, options.generation.ignore_end);
       }},
  };
  return list;
}

Status set(ptero_options& options, std::string_view key, const std::string& value) {
  for (const Key& known : keys()) {
    if (known.name == key) {
      PTERO_RETURN_IF_ERROR(known.set(options, value), "while setting option {}", key);
      return ok_status();
    }
  }
  std::vector<std::string_view> names;
  for (const Key& known : keys()) {
    names.push_back(known.name);
  }
  for (const graph::PlanOptionInfo& known : graph::plan_option_list()) {
    if (known.key == key) {
      return graph::set(options.plan, fmt::format("{}={}", key, value));
    }
    names.push_back(known.key);
  }
  return make_error(ErrorCode::invalid_argument, "There is no option ({}); there are {}.", key,
                    fmt::join(names, ", "));
}

std::string make_help() {
  std::string text;
  for (const Key& key : keys()) {
    text += fmt::format("{}: {}\n", key.name, key.help);
  }
  return text + graph::plan_option_help();
}

}  // namespace

Result<const ptero_options*> or_defaults(const ptero_options* options) {
  static const ptero_options defaults;
  if (options == nullptr) {
    return &defaults;
  }
  PTERO_RETURN_IF_ERROR(check(options));
  return options;
}

}  // namespace ptero::c_api

using namespace ptero;
using namespace ptero::c_api;

ptero_status ptero_options_create(ptero_options** out) {
  return guarded([&]() -> Status {
    PTERO_RETURN_IF_ERROR(check_pointer(out, "out"));
    *out = new ptero_options;
    return ok_status();
  });
}

void ptero_options_free(ptero_options* options) {
  if (is_valid(options)) {
    options->kind = {};
    delete options;
  }
}

ptero_status ptero_options_set(ptero_options* options, const char* key, const char* value) {
  return guarded([&]() -> Status {
    PTERO_RETURN_IF_ERROR(check(options));
    PTERO_RETURN_IF_ERROR(check_pointer(key, "key"));
    PTERO_RETURN_IF_ERROR(check_pointer(value, "value"));
    return c_api::set(*options, key, value);
  });
}

const char* ptero_options_help() {
  const char* help = "";
  guarded([&] {
    static const std::string text = make_help();
    help = text.c_str();
    return ok_status();
  });
  return help;
}
