// SPDX-License-Identifier: BSD-3-Clause
#include "graph/model.h"

#include <algorithm>
#include <utility>

#include "gpu/device_memory.h"
#include "graph/fit.h"

namespace ptero::graph {
namespace {

// Bytes that one advance() moves: large enough to cost nothing, small enough to keep a browser or
// a progress bar alive.
constexpr uint64_t kUploadSlice = 16ull << 20;

}  // namespace

class ModelLoader : public gpu::Pending<std::shared_ptr<const GraphModel>> {
 public:
  ModelLoader(gpu::Device device, pte::Graph graph, const OperatorRegistry& operators,
              GraphPasses passes, PlanOptions options)
      : model_(new GraphModel(std::move(device), std::move(graph), operators, std::move(options))),
        passes_(passes) {}

  gpu::WaitTarget wait_target() const override { return {}; }

 private:
  bool poll() override {
    Result<bool> done = advance_load();
    if (!done.ok()) {
      return finish(std::move(done).error());
    }
    return *done && finish(std::shared_ptr<const GraphModel>(std::move(model_)));
  }

  Result<bool> advance_load() {
    GraphModel& model = *model_;
    if (!placed_) {
      for (const GraphPass& pass : passes_) {
        PTERO_RETURN_IF_ERROR(pass(model.graph_, model.facts_));
      }
      PTERO_ASSIGN_OR_RETURN(model.memory_, plan_memory(model.graph_, *model.operators_));
      PTERO_RETURN_IF_ERROR(check_fit(model.memory_, model.device_.adapter().name,
                                      model.device_.limits().max_buffer_size,
                                      gpu::device_memory_bytes(model.device_)));
      model.weights_.resize(model.memory_.storages.size());
      placed_ = true;
    }
    uint64_t budget = kUploadSlice;
    while (next_ < model.memory_.storages.size() && budget > 0) {
      const Storage& storage = model.memory_.storages[next_];
      if (storage.kind != gpu::MemoryKind::weights) {
        ++next_;
        continue;
      }
      gpu::Buffer& buffer = model.weights_[next_];
      if (!buffer.valid()) {
        PTERO_ASSIGN_OR_RETURN(
            buffer, model.device_.create_buffer(storage.label, storage.bytes, storage.kind));
      }
      const pte::GraphConstant& constant = model.graph_.constants[*storage.constant];
      const uint64_t before = uploaded_;
      PTERO_ASSIGN_OR_RETURN(uploaded_,
                             upload_constant(model.device_, constant, buffer, uploaded_, budget));
      budget -= std::min(budget, uploaded_ - before);
      if (uploaded_ == constant.data.size()) {
        uploaded_ = 0;
        ++next_;
      }
    }
    return next_ == model.memory_.storages.size();
  }

  std::unique_ptr<GraphModel> model_;
  GraphPasses passes_;
  bool placed_ = false;
  size_t next_ = 0;        // storage
  uint64_t uploaded_ = 0;  // bytes of it
};

DeviceFacts device_facts(const gpu::Device& device, PlanOptions options) {
  const gpu::AdapterInfo& adapter = device.adapter();
  const bool software = options.adapter_routes == "auto" ? adapter.is_software()
                                                         : options.adapter_routes == "software";
  return {device.limits(),           device.features(),         software,
          adapter.subgroup_min_size, adapter.subgroup_max_size, adapter.matrix_shapes,
          std::move(options)};
}

std::unique_ptr<gpu::Pending<std::shared_ptr<const GraphModel>>> GraphModel::load(
    gpu::Device device, pte::Graph graph, const OperatorRegistry& operators, GraphPasses passes,
    PlanOptions options) {
  return std::make_unique<ModelLoader>(std::move(device), std::move(graph), operators, passes,
                                       std::move(options));
}

Result<uint64_t> upload_constant(gpu::Device& device, const pte::GraphConstant& constant,
                                 const gpu::Buffer& buffer, uint64_t done, uint64_t limit) {
  const uint64_t size = std::min(constant.data.size() - done, limit / 4 * 4);
  if (size == 0) {
    return done;
  }
  if (const auto bytes = constant.data.view()) {
    PTERO_RETURN_IF_ERROR(device.write(buffer, done, bytes->subspan(done, size)));
    return done + size;
  }
  std::vector<std::byte> slice(size);
  PTERO_RETURN_IF_ERROR(constant.data.read(done, slice), "while loading constant {}",
                        constant.named_key);
  PTERO_RETURN_IF_ERROR(device.write(buffer, done, slice));
  return done + size;
}

}  // namespace ptero::graph
