// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <webgpu/webgpu_cpp.h>

#include "base/log.h"
#include "base/result.h"
#include "gpu/adapter.h"
#include "gpu/internal/pump.h"

namespace ptero::gpu::internal {

struct InstanceState {
  LogCallback log;                 // outlives the instance, which calls it
  std::shared_ptr<void> platform;  // what platform_*.cc needs to keep
  wgpu::Instance handle;
};

struct AdapterState {
  std::shared_ptr<InstanceState> instance;
  size_t index = 0;  // into enumerate_adapters()
  AdapterInfo info;
};

// Platform differences (platform_native.cc; a browser build brings its own):
// how an instance is made, how adapters are found, when callbacks run (pump.h).
Result<std::shared_ptr<InstanceState>> create_instance(LogCallback log);
// WebGPU lets an adapter object make one device only, so every device starts from a new list; its
// order stays as long as the instance.
std::vector<wgpu::Adapter> enumerate_adapters(InstanceState& instance);
wgpu::CallbackMode callback_mode();

// Toggles that an adapter or device is requested with; names are Dawn's.
struct Toggles {
  std::vector<const char*> enabled;
  std::vector<const char*> disabled;
};
Toggles adapter_toggles();
Toggles device_toggles(bool robustness);

// Reads everything Ptero wants to know from an adapter (adapter.cc).
AdapterInfo describe_adapter(const InstanceState& instance, const wgpu::Adapter& adapter);
Limits convert_limits(const wgpu::Limits& limits);

inline std::string to_string(wgpu::StringView view) {
  return std::string(std::string_view(view));
}

}  // namespace ptero::gpu::internal
