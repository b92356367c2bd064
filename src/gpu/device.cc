// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/device.h"

#include <algorithm>
#include <utility>

#include "gpu/internal/device_state.h"

namespace ptero::gpu {
namespace internal {
namespace {

ErrorCode convert(wgpu::ErrorType type) {
  return type == wgpu::ErrorType::OutOfMemory ? ErrorCode::out_of_memory : ErrorCode::internal;
}

void cap(uint64_t& limit, uint64_t cap) {
  if (cap != 0) {
    limit = std::min(limit, cap);
  }
}
void cap(uint32_t& limit, uint32_t cap) {
  if (cap != 0) {
    limit = std::min(limit, cap);
  }
}

std::vector<wgpu::FeatureName> dawn_features(FeatureSet features) {
  std::vector<wgpu::FeatureName> names;
  for (const Feature feature : features) {
    switch (feature) {
      case Feature::shader_f16:
        names.push_back(wgpu::FeatureName::ShaderF16);
        break;
      case Feature::subgroups:
        names.push_back(wgpu::FeatureName::Subgroups);
        break;
      case Feature::subgroup_matrix:
        names.push_back(wgpu::FeatureName::ChromiumExperimentalSubgroupMatrix);
        break;
      case Feature::timestamps:
        names.push_back(wgpu::FeatureName::TimestampQuery);
        break;
      case Feature::packed_dot:  // of the language: always on where it exists
      case Feature::immediates:
        break;
    }
  }
  return names;
}

// A matrix kernel is written with subgroup built-ins around it.
FeatureSet close_over(FeatureSet features) {
  if (!features.contains(Feature::subgroups)) {
    features.erase(Feature::subgroup_matrix);
  }
  return features;
}

class DeviceRequest : public Pending<Device> {
 public:
  DeviceRequest(const Adapter& adapter, DeviceOptions options)
      : adapter_(adapter.state()), options_(std::move(options)) {
    FeatureSet wanted = adapter_.info.features;
    for (const Feature feature : options_.disabled) {
      wanted.erase(feature);
    }
    start(close_over(wanted));
  }

  WaitTarget wait_target() const override { return {adapter_.instance.get(), {future_}}; }

 private:
  struct Answer {
    bool arrived = false;
    wgpu::Device device;
    std::string message;
  };

  void start(FeatureSet features) {
    features_ = features;
    errors_ = std::make_shared<ErrorSink>();
    answer_ = std::make_shared<Answer>();

    // WebGPU lets an adapter give one device and then counts it as used up: take a new one.
    const std::vector<wgpu::Adapter> adapters = enumerate_adapters(*adapter_.instance);
    if (adapter_.index >= adapters.size()) {
      answer_->arrived = true;
      answer_->message = "it is no longer there";
      return;
    }
    const wgpu::Adapter& adapter = adapters[adapter_.index];
    wgpu::Limits limits;  // all the adapter has: software adapters give little by default
    adapter.GetLimits(&limits);
    const std::vector<wgpu::FeatureName> names = dawn_features(features);
    const Toggles toggles = device_toggles(options_.robustness);
    wgpu::DawnTogglesDescriptor toggles_descriptor;
    toggles_descriptor.enabledToggles = toggles.enabled.data();
    toggles_descriptor.enabledToggleCount = toggles.enabled.size();
    toggles_descriptor.disabledToggles = toggles.disabled.data();
    toggles_descriptor.disabledToggleCount = toggles.disabled.size();

    wgpu::DeviceDescriptor descriptor;
    descriptor.nextInChain = &toggles_descriptor;
    descriptor.label = "ptero";
    descriptor.requiredFeatures = names.data();
    descriptor.requiredFeatureCount = names.size();
    descriptor.requiredLimits = &limits;
    descriptor.SetDeviceLostCallback(
        callback_mode(), [errors = errors_](const wgpu::Device&, wgpu::DeviceLostReason reason,
                                            wgpu::StringView message) {
          if (reason != wgpu::DeviceLostReason::Destroyed &&
              reason != wgpu::DeviceLostReason::CallbackCancelled) {
            errors->report_loss(to_string(message));
          }
        });
    // The sink outlives the device: DeviceState and the callback above both hold it.
    descriptor.SetUncapturedErrorCallback(
        [](const wgpu::Device&, wgpu::ErrorType type, wgpu::StringView message, ErrorSink* errors) {
          errors->report(convert(type), to_string(message));
        },
        errors_.get());
    const wgpu::Future future =
        adapter.RequestDevice(&descriptor, callback_mode(),
                              [answer = answer_](wgpu::RequestDeviceStatus, wgpu::Device device,
                                                 wgpu::StringView message) {
                                answer->arrived = true;
                                answer->device = std::move(device);
                                answer->message = to_string(message);
                              });
    future_ = future.id;
  }

  bool poll() override {
    if (!answer_->arrived) {
      return false;
    }
    if (answer_->device == nullptr) {
      if (!features_.empty()) {
        if (options_.log) {
          options_.log(LogLevel::warning,
                       fmt::format("The adapter refuses a device with its optional features; going "
                                   "on without them ({}).",
                                   answer_->message));
        }
        start({});
        return false;
      }
      return finish(make_error(ErrorCode::unsupported, "Adapter ({}) cannot give a device: {}",
                               adapter_.info.name, answer_->message));
    }
    return finish(Device(build()));
  }

  std::shared_ptr<DeviceState> build() {
    auto state = std::make_shared<DeviceState>();
    state->instance = adapter_.instance;
    state->adapter = adapter_.info;
    state->features = features_;
    state->log = options_.log;
    state->faults = options_.faults;
    state->errors = errors_;
    state->device = std::move(answer_->device);
    state->queue = state->device.GetQueue();
    state->device.SetLoggingCallback(
        [](wgpu::LoggingType, wgpu::StringView message, DeviceState* device) {
          if (device->log) {
            device->log(LogLevel::info, std::string_view(message));
          }
        },
        state.get());

    wgpu::Limits limits;
    state->device.GetLimits(&limits);
    state->limits = convert_limits(limits);
    const LimitCaps& caps = options_.caps;
    cap(state->limits.max_buffer_size, caps.max_buffer_size);
    cap(state->limits.max_storage_binding_size, caps.max_storage_binding_size);
    cap(state->limits.max_storage_buffers_per_stage, caps.max_storage_buffers_per_stage);
    cap(state->limits.max_invocations_per_workgroup, caps.max_invocations_per_workgroup);
    cap(state->limits.max_workgroups_per_dimension, caps.max_workgroups_per_dimension);
    if (!features_.contains(Feature::immediates)) {
      state->limits.max_immediate_size = 0;
    }
    if (state->adapter.is_software() && state->log) {
      state->log(LogLevel::warning,
                 fmt::format("Only a software adapter ({}) runs this: WebGPU on the CPU. A CPU "
                             "runtime, such as ExecuTorch with XNNPACK, would be faster.",
                             state->adapter.name));
    }
    return state;
  }

  AdapterState adapter_;
  DeviceOptions options_;
  FeatureSet features_;
  std::shared_ptr<ErrorSink> errors_;
  std::shared_ptr<Answer> answer_;
  uint64_t future_ = 0;
};

}  // namespace

void ErrorSink::report(ErrorCode code, std::string message) {
  const std::lock_guard lock(mutex_);
  if (!first_) {
    first_.emplace(code, fmt::format("The GPU reports an error: {}", message));
  }
}

void ErrorSink::report_loss(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (!loss_) {
    loss_ = std::move(reason);
  }
}

Status ErrorSink::take() {
  const std::lock_guard lock(mutex_);
  if (loss_) {
    return make_error(ErrorCode::device_lost,
                      "The GPU device is lost ({}); make a new device to go on.", *loss_);
  }
  if (first_) {
    return *std::exchange(first_, std::nullopt);
  }
  return ok_status();
}

bool ErrorSink::lost() const {
  const std::lock_guard lock(mutex_);
  return loss_.has_value();
}

DeviceState::~DeviceState() {
  // Frees GPU memory now, not when the last callback lets go.
  if (device != nullptr) {
    device.SetLoggingCallback([](wgpu::LoggingType, wgpu::StringView) {});  // it points at this
    device.Destroy();
  }
}

std::optional<FaultKind> DeviceState::hit(FaultPoint point) {
  if (faults == nullptr) {
    return std::nullopt;
  }
  const std::optional<FaultKind> kind = faults->hit(point);
  if (kind == FaultKind::lose_device) {
    lose("injected fault");
  }
  return kind;
}

void DeviceState::lose(std::string_view reason) {
  errors->report_loss(std::string(reason));
  device.ForceLoss(wgpu::DeviceLostReason::Unknown, reason);
}

void DeviceState::count_allocation(MemoryKind kind, uint64_t bytes) {
  ++stats.buffers_live;
  ++stats.buffers_created;
  stats.scratch_live += kind == MemoryKind::scratch ? 1 : 0;
  stats.bytes_live += bytes;
  stats.bytes_peak = std::max(stats.bytes_peak, stats.bytes_live);
  uint64_t& live = stats.bytes_by_kind[static_cast<size_t>(kind)];
  live += bytes;
  uint64_t& peak = stats.peak_by_kind[static_cast<size_t>(kind)];
  peak = std::max(peak, live);
}

void DeviceState::count_release(MemoryKind kind, uint64_t bytes) {
  --stats.buffers_live;
  stats.scratch_live -= kind == MemoryKind::scratch ? 1 : 0;
  stats.bytes_live -= bytes;
  stats.bytes_by_kind[static_cast<size_t>(kind)] -= bytes;
}

}  // namespace internal

std::unique_ptr<Pending<Device>> Device::open(const Adapter& adapter, DeviceOptions options) {
  return std::make_unique<internal::DeviceRequest>(adapter, std::move(options));
}

const AdapterInfo& Device::adapter() const {
  return state_->adapter;
}
FeatureSet Device::features() const {
  return state_->features;
}
const Limits& Device::limits() const {
  return state_->limits;
}
const DeviceStats& Device::stats() const {
  return state_->stats;
}
Status Device::check() const {
  return state_->check();
}
void Device::lose_for_test(std::string_view reason) {
  state_->lose(reason);
}

std::string_view memory_kind_name(MemoryKind kind) {
  constexpr std::string_view kNames[kMemoryKindCount] = {
      "weights", "cache", "activations", "scratch", "staging", "uniforms", "other"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace ptero::gpu
