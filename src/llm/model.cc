// SPDX-License-Identifier: BSD-3-Clause
#include "llm/model.h"

#include <algorithm>
#include <utility>

#include "llm/device_sampler.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"
#include "passes/passes.h"

namespace ptero::llm {
namespace {

// Tokenizers and templates are small; more is an attack or a mistake.
constexpr uint64_t kLargestText = uint64_t{256} << 20;

Result<std::string> named_text(const pte::DataMap& data, std::string_view key) {
  const pte::DataMap::Entry* entry = data.find(key);
  if (entry == nullptr) {
    return std::string();
  }
  PTERO_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, entry->data.copy(kLargestText),
                         "while reading {}", key);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool is_half(const graph::MethodModel& method) {
  const pte::ExecutionPlan& plan = method.plan();
  for (const pte::Chain& chain : plan.chains) {
    for (const pte::Instruction& instruction : chain.instructions) {
      const auto* call = std::get_if<pte::DelegateCall>(&instruction);
      if (call == nullptr) {
        continue;
      }
      const pte::Graph& graph = method.delegates()[call->delegate]->graph();
      for (size_t i = 0; i < graph.outputs.size(); ++i) {
        const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[graph.outputs[i]]);
        if (call->args[graph.inputs.size() + i] == plan.outputs[0] && tensor != nullptr) {
          return tensor->dtype == pte::GraphDtype::float16;
        }
      }
    }
  }
  return false;
}

bool has_caches(const graph::MethodModel& method) {
  return std::any_of(method.delegates().begin(), method.delegates().end(), [](const auto& graph) {
    return graph->memory().bytes(gpu::MemoryKind::cache) > 0;
  });
}

}  // namespace

class LmLoader : public gpu::Pending<std::shared_ptr<const Model>> {
 public:
  LmLoader(gpu::Device device, ModelSource source)
      : model_(new Model(std::move(device), std::move(source))) {}

  gpu::WaitTarget wait_target() const override {
    if (kernels_ != nullptr) {
      return kernels_->wait_target();
    }
    return method_ != nullptr ? method_->wait_target() : gpu::WaitTarget{};
  }

 private:
  bool poll() override {
    Result<bool> done = advance_load();
    if (!done.ok()) {
      return finish(std::move(done).error());
    }
    return *done && finish(std::shared_ptr<const Model>(std::move(model_)));
  }

  Result<bool> advance_load() {
    Model& model = *model_;
    if (method_ == nullptr && model.method_ == nullptr) {
      PTERO_ASSIGN_OR_RETURN(model.metadata_,
                             read_metadata(*model.source_.program, model.source_.options.context));
      if (!model.source_.options.enable_f16_gemm) {
        model.source_.options.enable_f16_gemm = model.metadata_.f16_gemm;
      }
      PTERO_RETURN_IF_ERROR(read_texts());
      method_ = graph::MethodModel::load(model.device_, *model.source_.program, *model.source_.data,
                                         "forward", ops::all_operators(), ops::host_operators(),
                                         passes::standard_passes(), model.source_.options);
    }
    if (model.method_ == nullptr) {
      if (!method_->advance()) {
        return false;
      }
      PTERO_ASSIGN_OR_RETURN(model.method_, method_->take());
      PTERO_REJECT_IF(model.source_.options.context != 0 && !has_caches(*model.method_),
                      unsupported,
                      "The context cannot be changed: the program has no KV caches of its own.");
      method_ = nullptr;
      kernels_ = model.device_.prepare({DeviceSampler::kernel_key(
          is_half(*model.method_), model.device_.adapter().is_software())});
    }
    if (!kernels_->advance()) {
      return false;
    }
    PTERO_ASSIGN_OR_RETURN(const std::vector<gpu::Kernel> kernels, kernels_->take());
    PTERO_ASSIGN_OR_RETURN(const auto session, graph::MethodSession::create(model.method_));
    if (session->may_stay(0)) {
      model.sampler_ = kernels[0];
    }
    return true;
  }

  Status read_texts() {
    Model& model = *model_;
    const pte::DataMap& data = *model.source_.data;
    std::string tokenizer = model.source_.tokenizer;
    if (tokenizer.empty()) {
      PTERO_ASSIGN_OR_RETURN(tokenizer, named_text(data, kTokenizerKey));
    }
    if (!tokenizer.empty()) {
      PTERO_ASSIGN_OR_RETURN(model.tokenizer_, text::Tokenizer::from_bytes(tokenizer),
                             "while reading the tokenizer");
    }
    PTERO_ASSIGN_OR_RETURN(const std::string config, named_text(data, kTokenizerConfigKey));
    if (!config.empty()) {
      PTERO_ASSIGN_OR_RETURN(model.chat_config_, text::read_chat_config(config), "while reading {}",
                             kTokenizerConfigKey);
    }
    std::string source = model.source_.chat_template;
    if (source.empty()) {
      PTERO_ASSIGN_OR_RETURN(source, named_text(data, kChatTemplateKey));
    }
    if (source.empty()) {
      source = model.chat_config_.chat_template;
    }
    if (!source.empty()) {
      PTERO_ASSIGN_OR_RETURN(model.chat_template_, text::ChatTemplate::parse(source),
                             "while reading the chat template");
    }
    model.end_ids_ = model.metadata_.end_ids;
    if (model.tokenizer_) {
      for (const uint32_t id : model.tokenizer_->end_ids()) {
        if (id < model.metadata_.vocab_size) {
          model.end_ids_.push_back(id);
        }
      }
    }
    std::sort(model.end_ids_.begin(), model.end_ids_.end());
    model.end_ids_.erase(std::unique(model.end_ids_.begin(), model.end_ids_.end()),
                         model.end_ids_.end());
    return ok_status();
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<gpu::Pending<std::shared_ptr<const graph::MethodModel>>> method_;
  std::unique_ptr<gpu::Pending<std::vector<gpu::Kernel>>> kernels_;
};

std::unique_ptr<gpu::Pending<std::shared_ptr<const Model>>> Model::load(gpu::Device device,
                                                                        ModelSource source) {
  return std::make_unique<LmLoader>(std::move(device), std::move(source));
}

}  // namespace ptero::llm
