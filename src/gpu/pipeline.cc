// SPDX-License-Identifier: BSD-3-Clause
// Pipelines (one cache, keyed by the value that makes them) and bind groups.
#include <algorithm>

#include "gpu/internal/device_state.h"

namespace ptero::gpu {
namespace internal {

wgpu::BindGroupLayout DeviceState::storage_layout(const KernelSource& source) {
  std::string access;
  for (const BindingDecl& binding : source.bindings) {
    access += binding.writes ? 'w' : 'r';
  }
  wgpu::BindGroupLayout& layout = storage_layouts[access];
  if (layout == nullptr) {
    std::vector<wgpu::BindGroupLayoutEntry> entries(access.size());
    for (size_t i = 0; i < access.size(); ++i) {
      entries[i].binding = static_cast<uint32_t>(i);
      entries[i].visibility = wgpu::ShaderStage::Compute;
      entries[i].buffer.type = access[i] == 'w' ? wgpu::BufferBindingType::Storage
                                                : wgpu::BufferBindingType::ReadOnlyStorage;
    }
    wgpu::BindGroupLayoutDescriptor descriptor;
    descriptor.label = std::string_view(access);
    descriptor.entryCount = entries.size();
    descriptor.entries = entries.data();
    layout = device.CreateBindGroupLayout(&descriptor);
  }
  return layout;
}

namespace {

// Starts compiling; whatever fails before there is anything to wait for is left in entry.error.
void start(const std::shared_ptr<DeviceState>& state, const std::shared_ptr<PipelineEntry>& entry) {
  const auto fail = [&](Error error) { entry->error.emplace(std::move(error)); };
  if (entry->key.source == nullptr) {
    return fail(make_error(ErrorCode::invalid_argument, "A kernel key has no source."));
  }
  const KernelSource& source = *entry->key.source;

  for (const Feature feature : entry->key.features) {
    if (!state->features.contains(feature)) {
      return fail(make_error(ErrorCode::unsupported,
                             "Kernel ({}) needs {}, which this device does not have switched on.",
                             source.name, feature_name(feature)));
    }
  }
  if (source.bindings.size() > state->limits.max_storage_buffers_per_stage) {
    return fail(make_error(
        ErrorCode::unsupported, "Number of buffers ({}) of kernel ({}) exceeds the limit ({}).",
        source.bindings.size(), source.name, state->limits.max_storage_buffers_per_stage));
  }
  if (source.params_size > kUniformSlot) {
    return fail(make_error(ErrorCode::unsupported,
                           "Size of Params ({} bytes) of kernel ({}) exceeds the limit ({} bytes).",
                           source.params_size, source.name, kUniformSlot));
  }
  const auto fault = state->hit(FaultPoint::pipeline);
  if (fault == FaultKind::fail) {
    return fail(make_error(ErrorCode::internal, "Kernel ({}) does not compile: injected fault.",
                           source.name));
  }
  entry->hung = fault == FaultKind::hang;
  if (Status status = state->check(); !status.ok()) {
    return fail(std::move(status).error());
  }

  entry->route = params_route(source, state->features);
  Result<WgslModule> assembled = assemble_wgsl(entry->key, entry->route);
  if (!assembled.ok()) {
    return fail(std::move(assembled).error());
  }
  const size_t header = assembled->header_lines;

  state->device.PushErrorScope(wgpu::ErrorFilter::Validation);
  wgpu::ShaderSourceWGSL wgsl;
  wgsl.code = std::string_view(assembled->text);
  wgpu::ShaderModuleDescriptor module_descriptor;
  module_descriptor.nextInChain = &wgsl;
  module_descriptor.label = source.name;
  const wgpu::ShaderModule module = state->device.CreateShaderModule(&module_descriptor);
  entry->scope_future =
      state->device
          .PopErrorScope(callback_mode(),
                         [entry, header](wgpu::PopErrorScopeStatus, wgpu::ErrorType type,
                                         wgpu::StringView message) {
                           entry->scope_future = 0;
                           if (type != wgpu::ErrorType::NoError) {
                             entry->module_error = locate_wgsl_error(*entry->key.source, header,
                                                                     std::string_view(message));
                           }
                         })
          .id;

  entry->layout = state->storage_layout(source);
  std::vector<wgpu::BindGroupLayout> groups{entry->layout};
  if (entry->route == ParamsRoute::uniform) {
    if (Status status = state->reserve_uniforms(kUniformSlot); !status.ok()) {
      return fail(std::move(status).error());
    }
    groups.push_back(state->uniforms.layout);
  }
  wgpu::PipelineLayoutDescriptor layout_descriptor;
  layout_descriptor.label = source.name;
  layout_descriptor.bindGroupLayoutCount = groups.size();
  layout_descriptor.bindGroupLayouts = groups.data();
  layout_descriptor.immediateSize = entry->route == ParamsRoute::immediate ? source.params_size : 0;

  std::vector<wgpu::ConstantEntry> constants;
  for (const OverrideValue& value : entry->key.overrides) {
    constants.push_back({nullptr, std::string_view(value.name), value.value});
  }
  wgpu::ComputePipelineDescriptor descriptor;
  descriptor.label = source.name;
  descriptor.layout = state->device.CreatePipelineLayout(&layout_descriptor);
  descriptor.compute.module = module;
  descriptor.compute.entryPoint = "main";
  descriptor.compute.constantCount = constants.size();
  descriptor.compute.constants = constants.data();
  entry->pipeline_future =
      state->device
          .CreateComputePipelineAsync(
              &descriptor, callback_mode(),
              [entry, weak = std::weak_ptr(state)](wgpu::CreatePipelineAsyncStatus status,
                                                   wgpu::ComputePipeline pipeline,
                                                   wgpu::StringView message) {
                entry->pipeline_future = 0;
                if (status != wgpu::CreatePipelineAsyncStatus::Success) {
                  entry->error.emplace(
                      ErrorCode::internal,
                      fmt::format("Kernel ({}) does not compile: {}", entry->key.source->name,
                                  std::string_view(message)));
                  return;
                }
                entry->pipeline = std::move(pipeline);
                if (const auto device = weak.lock()) {
                  ++device->stats.pipelines_created;
                  for (const Feature feature : entry->key.features) {
                    ++device->stats.pipelines_by_feature[static_cast<size_t>(feature)];
                  }
                  if (entry->route == ParamsRoute::immediate) {
                    ++device->stats.pipelines_by_feature[static_cast<size_t>(Feature::immediates)];
                  }
                }
              })
          .id;
}

class Preparation : public Pending<std::vector<Kernel>> {
 public:
  Preparation(std::shared_ptr<DeviceState> state, std::vector<KernelKey> keys)
      : state_(std::move(state)) {
    for (KernelKey& key : keys) {
      std::shared_ptr<PipelineEntry>& entry = state_->pipelines[key];
      if (entry == nullptr) {
        entry = std::make_shared<PipelineEntry>();
        entry->key = std::move(key);
        entry->device = state_.get();
        start(state_, entry);
      }
      entries_.push_back(entry);
    }
  }

  WaitTarget wait_target() const override {
    WaitTarget target{state_->instance.get(), {}};
    for (const auto& entry : entries_) {
      for (const uint64_t future : {entry->scope_future, entry->pipeline_future}) {
        if (future != 0) {
          target.futures.push_back(future);
        }
      }
    }
    return target;
  }

 private:
  bool poll() override {
    if (state_->errors->lost()) {  // kernels compiled before are of no use either
      return finish(std::move(state_->check()).error());
    }
    std::vector<Kernel> kernels;
    std::optional<Error> error;
    for (const auto& entry : entries_) {
      if (entry->pending()) {
        return false;
      }
      if (!entry->error && entry->pipeline != nullptr) {
        kernels.emplace_back(entry);
        continue;
      }
      // Forgotten, so that a later try starts anew.
      if (const auto cached = state_->pipelines.find(entry->key);
          cached != state_->pipelines.end() && cached->second == entry) {
        state_->pipelines.erase(cached);
      }
      if (!error) {
        if (!entry->module_error.empty()) {
          error = make_error(ErrorCode::internal, "Kernel ({}) does not compile: {}",
                             entry->key.source->name, entry->module_error);
        } else if (entry->error) {
          error = entry->error;
        } else {
          error = make_error(ErrorCode::internal, "The GPU gives no pipeline for kernel ({}).",
                             entry->key.source->name);
        }
      }
    }
    if (error) {
      return finish(*std::move(error));
    }
    return finish(std::move(kernels));
  }

  std::shared_ptr<DeviceState> state_;
  std::vector<std::shared_ptr<PipelineEntry>> entries_;
};

}  // namespace
}  // namespace internal

std::string_view Kernel::name() const {
  return entry_->key.source->name;
}
const KernelKey& Kernel::key() const {
  return entry_->key;
}
uint32_t Kernel::params_size() const {
  return entry_->key.source->params_size;
}

std::unique_ptr<Pending<std::vector<Kernel>>> Device::prepare(std::vector<KernelKey> keys) {
  return std::make_unique<internal::Preparation>(state_, std::move(keys));
}

namespace {

// WebGPU refuses a dispatch that can both read and write one buffer through different bindings,
// whatever the ranges, and one that can write the same bytes through two.
Status check_conflicts(const KernelSource& source, std::span<const Binding> bindings) {
  for (size_t i = 0; i < bindings.size(); ++i) {
    for (size_t j = i + 1; j < bindings.size(); ++j) {
      const Binding& a = bindings[i];
      const Binding& b = bindings[j];
      const bool a_writes = source.bindings[i].writes;
      const bool b_writes = source.bindings[j].writes;
      if (a.buffer != b.buffer || (!a_writes && !b_writes)) {
        continue;
      }
      PTERO_REJECT_IF(
          a_writes != b_writes, invalid_argument,
          "Kernel ({}) would read buffer ({}) as {} and write it as {} in one dispatch; "
          "bind it once, or use two buffers.",
          source.name, a.buffer->label(), source.bindings[a_writes ? j : i].name,
          source.bindings[a_writes ? i : j].name);
      const uint64_t a_size = a.size != 0 ? a.size : a.buffer->state()->allocated - a.offset;
      const uint64_t b_size = b.size != 0 ? b.size : b.buffer->state()->allocated - b.offset;
      PTERO_REJECT_IF(
          a.offset < b.offset + b_size && b.offset < a.offset + a_size, invalid_argument,
          "Kernel ({}) would write the same bytes of buffer ({}) as {} and as {} in one "
          "dispatch.",
          source.name, a.buffer->label(), source.bindings[i].name, source.bindings[j].name);
    }
  }
  return ok_status();
}

}  // namespace

Result<BindGroup> Device::bind(const Kernel& kernel, std::span<const Binding> bindings) {
  PTERO_REJECT_IF(kernel.entry() == nullptr, invalid_argument,
                  "There is no kernel to bind buffers to.");
  const internal::PipelineEntry& pipeline = *kernel.entry();
  const KernelSource& source = *pipeline.key.source;
  PTERO_RETURN_IF_ERROR(state_->check(), "while binding buffers to kernel {}", source.name);
  PTERO_REJECT_IF(bindings.size() != source.bindings.size(), invalid_argument,
                  "Number of buffers ({}) for kernel ({}) differs from what it declares ({}).",
                  bindings.size(), source.name, source.bindings.size());
  PTERO_REJECT_IF(pipeline.device != state_.get(), invalid_argument,
                  "Kernel ({}) belongs to another device.", source.name);
  std::vector<wgpu::BindGroupEntry> entries(bindings.size());
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = bindings[i];
    const std::string_view name = source.bindings[i].name;
    PTERO_REJECT_IF(binding.buffer == nullptr || !binding.buffer->valid(), invalid_argument,
                    "Binding ({}) of kernel ({}) has no buffer.", name, source.name);
    const internal::BufferState& buffer = *binding.buffer->state();
    PTERO_REJECT_IF(buffer.device != state_, invalid_argument,
                    "Buffer ({}) for binding ({}) of kernel ({}) belongs to another device.",
                    buffer.label, name, source.name);
    const uint32_t alignment = state_->limits.min_storage_offset_alignment;
    PTERO_REJECT_IF(binding.offset % alignment != 0 || binding.size % 4 != 0, invalid_argument,
                    "Binding ({}) of kernel ({}) starts at {} with {} bytes, which is not aligned "
                    "to {} and 4.",
                    name, source.name, binding.offset, binding.size, alignment);
    PTERO_REJECT_IF(
        binding.offset >= buffer.allocated || binding.size > buffer.allocated - binding.offset,
        invalid_argument,
        "Binding ({}) of kernel ({}), {} bytes at {}, runs past the end of buffer ({}, "
        "{} bytes).",
        name, source.name, binding.size, binding.offset, buffer.label, buffer.size);
    const uint64_t size = binding.size != 0 ? binding.size : buffer.allocated - binding.offset;
    PTERO_REJECT_IF(size > state_->limits.max_storage_binding_size, unsupported,
                    "Size ({} bytes) of binding ({}) of kernel ({}) exceeds the limit ({} bytes); "
                    "split it by rows.",
                    size, name, source.name, state_->limits.max_storage_binding_size);
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].buffer = buffer.handle;
    entries[i].offset = binding.offset;
    entries[i].size = size;
  }
  PTERO_RETURN_IF_ERROR(check_conflicts(source, bindings));
  wgpu::BindGroupDescriptor descriptor;
  descriptor.label = source.name;
  descriptor.layout = pipeline.layout;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  auto group = std::make_shared<internal::BindGroupState>();
  group->device = state_;
  group->pipeline = kernel.share();
  group->handle = state_->device.CreateBindGroup(&descriptor);
  ++state_->stats.bind_groups_created;
  PTERO_RETURN_IF_ERROR(state_->check(), "while binding buffers to kernel {}", source.name);
  return BindGroup(std::move(group));
}

}  // namespace ptero::gpu
