// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/device_memory.h"

#include <algorithm>

#include "gpu/internal/device_state.h"

namespace ptero::gpu {

std::optional<uint64_t> device_memory_bytes(const Device& device) {
  const wgpu::Adapter adapter = device.state().device.GetAdapter();
  if (adapter == nullptr || !adapter.HasFeature(wgpu::FeatureName::AdapterPropertiesMemoryHeaps)) {
    return std::nullopt;
  }
  wgpu::AdapterPropertiesMemoryHeaps heaps;
  wgpu::AdapterInfo info;
  info.nextInChain = &heaps;
  if (adapter.GetInfo(&info) != wgpu::Status::Success) {
    return std::nullopt;
  }
  // Not their sum: a window for the host's writes is part of the same memory.
  uint64_t largest = 0;
  for (size_t i = 0; i < heaps.heapCount; ++i) {
    const wgpu::MemoryHeapInfo& heap = heaps.heapInfo[i];
    if ((heap.properties & wgpu::HeapProperty::DeviceLocal) != wgpu::HeapProperty::None) {
      largest = std::max(largest, heap.size);
    }
  }
  return largest > 0 ? std::optional(largest) : std::nullopt;
}

}  // namespace ptero::gpu
