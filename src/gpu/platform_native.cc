// SPDX-License-Identifier: BSD-3-Clause
// Native Dawn: everything that differs from a browser, apart from the blocking wait.
#include <array>

#include <dawn/native/DawnNative.h>

#include "gpu/internal/instance_state.h"

#ifndef PTERO_DAWN_VERSION
#define PTERO_DAWN_VERSION "unknown"
#endif

namespace ptero::gpu {

std::string_view Instance::implementation_version() {
  return "Dawn " PTERO_DAWN_VERSION;
}

namespace internal {
namespace {

wgpu::DawnTogglesDescriptor describe(const Toggles& toggles) {
  wgpu::DawnTogglesDescriptor descriptor;
  descriptor.enabledToggles = toggles.enabled.data();
  descriptor.enabledToggleCount = toggles.enabled.size();
  descriptor.disabledToggles = toggles.disabled.data();
  descriptor.disabledToggleCount = toggles.disabled.size();
  return descriptor;
}

}  // namespace

Result<std::shared_ptr<InstanceState>> create_instance(LogCallback log) {
  // The subgroup-matrix feature is experimental, and Dawn offers it only to unsafe instances.
  const Toggles toggles{.enabled = {"allow_unsafe_apis"}, .disabled = {}};
  wgpu::DawnTogglesDescriptor toggles_descriptor = describe(toggles);
  const std::array features{wgpu::InstanceFeatureName::TimedWaitAny};
  wgpu::InstanceLimits limits;
  limits.timedWaitAnyMaxCount = 64;
  auto state = std::make_shared<InstanceState>();
  state->log = std::move(log);
  dawn::native::DawnInstanceDescriptor dawn_descriptor;
  dawn_descriptor.nextInChain = &toggles_descriptor;
  // Dawn prints to stderr unless it is given somewhere else to go.
  dawn_descriptor.SetLoggingCallback(
      [](wgpu::LoggingType, wgpu::StringView message, InstanceState* instance) {
        if (instance->log) {
          instance->log(LogLevel::info, std::string_view(message));
        }
      },
      state.get());
  wgpu::InstanceDescriptor descriptor;
  descriptor.nextInChain = &dawn_descriptor;
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  // Dawn's own class, because only it can list every adapter: RequestAdapter() gives one a call
  // and hides the second of two equal GPUs.
  auto native = std::make_shared<dawn::native::Instance>(&descriptor);
  PTERO_REJECT_IF(native->Get() == nullptr, unsupported, "Dawn cannot create a WebGPU instance.");
  state->handle = wgpu::Instance(native->Get());
  state->platform = std::move(native);
  return state;
}

std::vector<wgpu::Adapter> enumerate_adapters(InstanceState& instance) {
  const Toggles toggles = adapter_toggles();
  wgpu::DawnTogglesDescriptor toggles_descriptor = describe(toggles);
  wgpu::RequestAdapterOptions options;
  options.nextInChain = &toggles_descriptor;
  options.powerPreference = wgpu::PowerPreference::HighPerformance;
  const auto& native = *static_cast<const dawn::native::Instance*>(instance.platform.get());
  std::vector<wgpu::Adapter> adapters;
  for (const dawn::native::Adapter& adapter : native.EnumerateAdapters(&options)) {
    wgpu::Adapter handle(adapter.Get());
    wgpu::AdapterInfo info;
    handle.GetInfo(&info);
    if (info.backendType != wgpu::BackendType::Null) {
      adapters.push_back(std::move(handle));
    }
  }
  return adapters;
}

wgpu::CallbackMode callback_mode() {
  return wgpu::CallbackMode::AllowProcessEvents;
}

void pump_callbacks(InstanceState& instance) {
  instance.handle.ProcessEvents();
}

Toggles adapter_toggles() {
  return {
      .enabled = {"allow_unsafe_apis", "vulkan_enable_f16_on_nvidia", "use_vulkan_memory_model"},
      .disabled = {"timestamp_quantization"}};
}

Toggles device_toggles(bool robustness) {
  Toggles toggles = adapter_toggles();
  if (!robustness) {
    toggles.enabled.push_back("disable_robustness");
  }
  return toggles;
}

}  // namespace internal
}  // namespace ptero::gpu
