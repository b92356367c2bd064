// SPDX-License-Identifier: BSD-3-Clause
#include "graph/session.h"

#include <algorithm>
#include <utility>

namespace ptero::graph {

// One run: compile (when the plan is new), submit, read back.
class SessionRun : public gpu::Pending<std::vector<RunOutput>> {
 public:
  SessionRun(GraphSession& session, std::shared_ptr<const Plan> plan,
             std::span<const RunInput> inputs)
      : session_(session), plan_(std::move(plan)) {
    for (const RunInput& input : inputs) {
      kept_bytes_.emplace_back(input.bytes.begin(), input.bytes.end());
      inputs_.push_back({input.live, kept_bytes_.back()});
    }
  }

  gpu::WaitTarget wait_target() const override {
    if (kernels_ != nullptr) {
      return kernels_->wait_target();
    }
    return data_ != nullptr ? data_->wait_target() : gpu::WaitTarget{};
  }

 private:
  bool poll() override {
    Result<bool> done = advance_run();
    if (!done.ok()) {
      return finish(std::move(done).error());
    }
    return *done && finish(std::move(outputs_));
  }

  Result<bool> advance_run() {
    if (data_ == nullptr) {
      PTERO_ASSIGN_OR_RETURN(const GraphSession::Ready* ready, find_ready());
      if (ready == nullptr) {
        return false;
      }
      PTERO_RETURN_IF_ERROR(start(*ready));
      if (data_ == nullptr) {
        return true;  // nothing to read back
      }
    }
    if (!data_->advance()) {
      return false;
    }
    PTERO_ASSIGN_OR_RETURN(gpu::ReadData data, data_->take());
    for (size_t i = 0; i < data.size(); ++i) {
      outputs_[read_outputs_[i]].bytes = std::move(data[i]);
    }
    return true;
  }

  Result<const GraphSession::Ready*> find_ready() {
    if (const auto known = session_.ready_.find(plan_.get()); known != session_.ready_.end()) {
      return &known->second;
    }
    if (kernels_ == nullptr) {
      std::vector<gpu::KernelKey> keys;
      for (const auto& command : plan_->commands) {
        if (const auto* dispatch = std::get_if<PlannedDispatch>(&command)) {
          keys.push_back(dispatch->kernel);
        }
      }
      kernels_ = session_.device_.prepare(std::move(keys));
    }
    if (!kernels_->advance()) {
      return nullptr;
    }
    PTERO_ASSIGN_OR_RETURN(const std::vector<gpu::Kernel> kernels, kernels_->take());
    kernels_ = nullptr;
    return session_.make_ready(plan_, kernels);
  }

  Status start(const GraphSession::Ready& ready) {
    const pte::Graph& graph = session_.model_->graph();
    PTERO_RETURN_IF_ERROR(session_.poison());
    PTERO_RETURN_IF_ERROR(session_.write_inputs(inputs_));
    std::vector<gpu::ReadRange> ranges;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      RunOutput output{plan_->output_shapes[i], {}, plan_->output_scalars[i]};
      const uint32_t id = graph.outputs[i];
      if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[id])) {
        const uint64_t bytes = output.shape.numel() * *pte::element_size(tensor->dtype);
        if (bytes > 0) {
          ranges.push_back(
              {&session_.storage(*session_.model_->memory().storage_of[id]), 0, bytes});
          read_outputs_.push_back(i);
        }
      }
      outputs_.push_back(std::move(output));
    }
    session_.last_dispatches_ = plan_->dispatches();
    if (ranges.empty()) {
      return session_.device_.submit(ready.step);
    }
    PTERO_ASSIGN_OR_RETURN(data_, session_.device_.submit_and_read(&ready.step, ranges));
    return ok_status();
  }

  GraphSession& session_;
  std::shared_ptr<const Plan> plan_;
  std::deque<std::vector<std::byte>> kept_bytes_;
  std::vector<RunInput> inputs_;
  std::unique_ptr<gpu::Pending<std::vector<gpu::Kernel>>> kernels_;
  std::unique_ptr<gpu::Pending<gpu::ReadData>> data_;
  std::vector<size_t> read_outputs_;  // entry i of the data belongs to this output
  std::vector<RunOutput> outputs_;
};

GraphSession::GraphSession(std::shared_ptr<const GraphModel> model, SessionOptions options)
    : device_(model->device()),
      model_(std::move(model)),
      options_(options),
      planner_(model_->graph(), model_->memory(), model_->operators(), device_facts(device_)) {}

GraphSession::~GraphSession() = default;

Result<std::unique_ptr<GraphSession>> GraphSession::create(std::shared_ptr<const GraphModel> model,
                                                           SessionOptions options) {
  std::unique_ptr<GraphSession> session(new GraphSession(std::move(model), options));
  PTERO_RETURN_IF_ERROR(session->allocate());
  return session;
}

Status GraphSession::allocate() {
  const MemoryPlan& memory = model_->memory();
  buffers_.resize(memory.storages.size());
  for (uint32_t i = 0; i < memory.storages.size(); ++i) {
    if (model_->weights(i) == nullptr) {
      const Storage& storage = memory.storages[i];
      PTERO_ASSIGN_OR_RETURN(buffers_[i],
                             device_.create_buffer(storage.label, storage.bytes, storage.kind));
    }
  }
  return reset();
}

// Caches start from their constants, which are zeros in every file of today.
Status GraphSession::reset() {
  const MemoryPlan& memory = model_->memory();
  for (uint32_t i = 0; i < memory.storages.size(); ++i) {
    const Storage& storage = memory.storages[i];
    if (storage.kind != gpu::MemoryKind::cache) {
      continue;
    }
    const pte::GraphConstant& constant = model_->graph().constants[*storage.constant];
    for (uint64_t done = 0; done < constant.data.size();) {
      PTERO_ASSIGN_OR_RETURN(
          done, upload_constant(device_, constant, buffers_[i], done, uint64_t{16} << 20));
    }
  }
  return ok_status();
}

const gpu::Buffer& GraphSession::storage(uint32_t id) const {
  const gpu::Buffer* weights = model_->weights(id);
  return weights != nullptr ? *weights : buffers_[id];
}

Status GraphSession::write_inputs(std::span<const RunInput> inputs) {
  const pte::Graph& graph = model_->graph();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t id = graph.inputs[i];
    if (std::holds_alternative<pte::GraphTensor>(graph.values[id])) {
      PTERO_RETURN_IF_ERROR(
          device_.write(storage(*model_->memory().storage_of[id]), 0, inputs[i].bytes),
          "while uploading input {}", i);
    }
  }
  return ok_status();
}

Status GraphSession::poison() {
  if (!options_.poison_activations) {
    return ok_status();
  }
  for (const gpu::Buffer& buffer : buffers_) {
    if (buffer.valid() && buffer.kind() == gpu::MemoryKind::activations) {
      const std::vector<std::byte> nan(buffer.size(), std::byte{0xff});
      PTERO_RETURN_IF_ERROR(device_.write(buffer, 0, nan));
    }
  }
  return ok_status();
}

// A slot that grows invalidates the bind groups of older plans: they are made again when needed.
Status GraphSession::reserve_scratch(const Plan& plan) {
  for (size_t i = 0; i < plan.scratch.size(); ++i) {
    if (i == scratch_.size()) {
      scratch_.emplace_back();
    }
    if (scratch_[i].size() < plan.scratch[i]) {
      ready_.clear();
      PTERO_ASSIGN_OR_RETURN(scratch_[i],
                             device_.create_buffer(fmt::format("scratch {}", i), plan.scratch[i],
                                                   gpu::MemoryKind::scratch));
    }
  }
  return ok_status();
}

Result<const GraphSession::Ready*> GraphSession::make_ready(
    std::shared_ptr<const Plan> plan, const std::vector<gpu::Kernel>& kernels) {
  PTERO_RETURN_IF_ERROR(reserve_scratch(*plan));
  // Forget what the planner has forgotten.
  std::erase_if(ready_, [](const auto& entry) { return entry.second.plan.use_count() == 1; });
  Ready ready{plan, {}};
  size_t next_kernel = 0;
  for (const auto& command : plan->commands) {
    const uint32_t call = std::visit([](const auto& c) { return c.call; }, command);
    const std::string& name = model_->graph().chain[call].name;
    if (const auto* copy = std::get_if<PlannedCopy>(&command)) {
      PTERO_RETURN_IF_ERROR(
          ready.step.copy(storage(copy->source), 0, storage(copy->target), 0, copy->bytes),
          "in operator {} ({})", call, name);
      continue;
    }
    const auto& dispatch = std::get<PlannedDispatch>(command);
    const gpu::Kernel& kernel = kernels[next_kernel++];
    std::vector<gpu::Binding> bindings;
    for (const PlannedBinding& binding : dispatch.bindings) {
      bindings.push_back({binding.is_scratch ? &scratch_[binding.id] : &storage(binding.id),
                          binding.offset, binding.size});
    }
    PTERO_ASSIGN_OR_RETURN(const gpu::BindGroup group, device_.bind(kernel, bindings),
                           "in operator {} ({})", call, name);
    PTERO_RETURN_IF_ERROR(
        ready.step.dispatch(kernel, group, std::span<const std::byte>(dispatch.params),
                            dispatch.grid),
        "in operator {} ({})", call, name);
  }
  const Plan* key = plan.get();
  return &ready_.insert_or_assign(key, std::move(ready)).first->second;
}

Result<std::unique_ptr<gpu::Pending<std::vector<RunOutput>>>> GraphSession::run(
    std::span<const RunInput> inputs) {
  std::vector<LiveInput> live;
  for (const RunInput& input : inputs) {
    live.push_back(input.live);
  }
  PTERO_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, planner_.plan(live));
  const pte::Graph& graph = model_->graph();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[graph.inputs[i]])) {
      const uint64_t bytes = live[i].shape.numel() * *pte::element_size(tensor->dtype);
      PTERO_REJECT_IF(inputs[i].bytes.size() != bytes, invalid_argument,
                      "Size ({} bytes) of input {} differs from what its shape {} takes ({}).",
                      inputs[i].bytes.size(), i, to_string(live[i].shape), bytes);
    }
  }
  return std::unique_ptr<gpu::Pending<std::vector<RunOutput>>>(
      std::make_unique<SessionRun>(*this, std::move(plan), inputs));
}

}  // namespace ptero::graph
