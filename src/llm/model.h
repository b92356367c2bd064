// SPDX-License-Identifier: BSD-3-Clause
// A language model on a device: program, weights, tokenizer and chat template. Immutable, shared by
// sessions.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "gpu/device.h"
#include "graph/method.h"
#include "llm/metadata.h"
#include "pte/data_map.h"
#include "pte/program.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ptero::llm {

// What a model is made from. The bytes of a tokenizer and of a template win over those that the
// program brings as named data.
struct ModelSource {
  std::shared_ptr<const pte::Program> program;
  std::shared_ptr<const pte::DataMap> data;
  std::string tokenizer;       // tokenizer.json, tiktoken or SentencePiece; empty: the program's
  std::string chat_template;   // Jinja; empty: the program's
  graph::PlanOptions options;  // what these leave to the program (enable_f16_gemm) it may ask for
};

class Model {
 public:
  // Uploads the weights, some MiB with each advance(). Errors: those of MethodModel::load() and
  // read_metadata(); invalid_program for a tokenizer that is broken. One with ids which the model
  // lacks is taken, as some models have such; a prompt with them is refused. A program without a
  // tokenizer is fine: then tokens go in and out.
  static std::unique_ptr<gpu::Pending<std::shared_ptr<const Model>>> load(gpu::Device device,
                                                                          ModelSource source);

  const Metadata& metadata() const { return metadata_; }
  const gpu::Device& device() const { return device_; }
  const std::shared_ptr<const graph::MethodModel>& method() const { return method_; }
  const std::optional<text::Tokenizer>& tokenizer() const { return tokenizer_; }
  const std::optional<text::ChatTemplate>& chat_template() const { return chat_template_; }
  // begin and end token as the template calls them
  const text::ChatConfig& chat_config() const { return chat_config_; }
  // Where generation stops: what the program says and what the tokenizer says. Rising.
  const std::vector<uint32_t>& end_ids() const { return end_ids_; }
  // Picks tokens on the device; empty when the logits come from a host operator.
  const std::optional<gpu::Kernel>& sampler() const { return sampler_; }

 private:
  friend class LmLoader;
  Model(gpu::Device device, ModelSource source)
      : device_(std::move(device)), source_(std::move(source)) {}

  gpu::Device device_;
  ModelSource source_;
  Metadata metadata_;
  std::shared_ptr<const graph::MethodModel> method_;
  std::optional<text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
  text::ChatConfig chat_config_;
  std::vector<uint32_t> end_ids_;
  std::optional<gpu::Kernel> sampler_;
};

}  // namespace ptero::llm
