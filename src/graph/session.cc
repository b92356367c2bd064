// SPDX-License-Identifier: BSD-3-Clause
#include "graph/session.h"

#include <algorithm>
#include <utility>

namespace ptero::graph {
GraphSession::GraphSession(std::shared_ptr<const GraphModel> model, SessionOptions options)
    : device_(model->device()),
      model_(std::move(model)),
      options_(options),
      planner_(model_->graph(), model_->memory(), model_->operators(), model_->facts()) {}

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
  place_scratch();
  return reset();
}

// What the largest shapes and steps of one token need is allocated now; other shapes may still add
// to it. Shapes that cannot be planned or do not fit are no error here: they may never be run.
void GraphSession::place_scratch() {
  for (const auto& inputs : {planner_.largest_inputs(), planner_.smallest_inputs()}) {
    const Result<PlannedRun> run =
        inputs.ok() ? planner_.plan(*inputs) : Result<PlannedRun>(inputs.error());
    if (run.ok()) {
      (void)reserve_scratch(*run->plan);
    }
  }
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

std::vector<const gpu::Buffer*> GraphSession::caches() const {
  std::vector<const gpu::Buffer*> caches;
  for (const gpu::Buffer& buffer : buffers_) {
    if (buffer.valid() && buffer.kind() == gpu::MemoryKind::cache) {
      caches.push_back(&buffer);
    }
  }
  return caches;
}

BytesByKind GraphSession::planned_bytes() {
  return graph::planned_bytes(model_->memory(), planner_, model_->facts());
}

const gpu::Buffer& GraphSession::storage(uint32_t id) const {
  const gpu::Buffer* weights = model_->weights(id);
  return weights != nullptr ? *weights : buffers_[id];
}

Status GraphSession::write_inputs(std::span<const RunInput> inputs, gpu::Step& copies) {
  const pte::Graph& graph = model_->graph();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t id = graph.inputs[i];
    const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[id]);
    if (tensor == nullptr) {
      continue;
    }
    const gpu::Buffer& target = storage(*model_->memory().storage_of[id]);
    if (inputs[i].buffer == nullptr) {
      PTERO_RETURN_IF_ERROR(device_.write(target, 0, inputs[i].bytes), "while uploading input {}",
                            i);
    } else if (const uint64_t bytes =
                   inputs[i].live.shape.numel() * *pte::element_size(tensor->dtype);
               bytes > 0) {
      PTERO_RETURN_IF_ERROR(copies.copy(*inputs[i].buffer, 0, target, 0, whole_words(bytes)),
                            "in input {}", i);
    }
  }
  return ok_status();
}

// Slots that the device computes are written before they are read, so what stands there now is of
// no account; the host's are written when they change.
Status GraphSession::write_slots(const PlannedRun& run) {
  const std::optional<uint32_t>& slots = model_->memory().slot_storage;
  if (!slots) {
    return ok_status();
  }
  std::vector<int32_t> now = planner_.slots(run);
  if (now == slots_) {
    return ok_status();
  }
  PTERO_RETURN_IF_ERROR(device_.write(storage(*slots), 0, std::as_bytes(std::span(now))),
                        "while uploading scalars");
  slots_ = std::move(now);
  return ok_status();
}

Status GraphSession::follow_scalars(const PlannedRun& run, Ready& ready) const {
  for (const size_t index : run.plan->live_grids) {
    const auto& dispatch = std::get<PlannedDispatch>(run.plan->commands[index]);
    const LiveGrid& follow = *dispatch.live_grid;
    if (!run.scalars[follow.id]) {
      continue;  // only the device knows: the whole grid, as planned
    }
    gpu::Grid grid = dispatch.grid;
    uint32_t& axis = follow.axis == 0 ? grid.x : follow.axis == 1 ? grid.y : grid.z;
    const int64_t needed = (*run.scalars[follow.id] + follow.add + follow.divide - 1) /
                           static_cast<int64_t>(follow.divide);
    axis = static_cast<uint32_t>(std::clamp<int64_t>(needed, 1, axis));
    PTERO_RETURN_IF_ERROR(ready.step.set_grid(index, grid));
  }
  return ok_status();
}

Status GraphSession::check_buffers(std::span<const RunInput> inputs,
                                   std::span<const gpu::Buffer* const> outputs,
                                   const Plan& plan) const {
  const pte::Graph& graph = model_->graph();
  const auto check = [&](const char* what, size_t i, uint32_t id, const Shape& shape,
                         const gpu::Buffer* buffer) -> Status {
    const auto* tensor = std::get_if<pte::GraphTensor>(&graph.values[id]);
    if (buffer == nullptr || tensor == nullptr) {
      return ok_status();
    }
    const uint64_t bytes = whole_words(shape.numel() * *pte::element_size(tensor->dtype));
    PTERO_REJECT_IF(buffer->size() < bytes, invalid_argument,
                    "Buffer ({} bytes) for {} {} is smaller than its shape {} takes ({}).",
                    buffer->size(), what, i, to_string(shape), bytes);
    return ok_status();
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    PTERO_RETURN_IF_ERROR(
        check("input", i, graph.inputs[i], inputs[i].live.shape, inputs[i].buffer));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    PTERO_RETURN_IF_ERROR(check("output", i, graph.outputs[i], plan.output_shapes[i], outputs[i]));
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

Result<GraphSession::Ready*> GraphSession::make_ready(std::shared_ptr<const Plan> plan,
                                                      const std::vector<gpu::Kernel>& kernels) {
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

}  // namespace ptero::graph
