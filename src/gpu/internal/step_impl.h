// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <variant>
#include <vector>

#include <webgpu/webgpu_cpp.h>

#include "gpu/internal/device_state.h"
#include "gpu/step.h"

namespace ptero::gpu {

namespace internal {

struct DispatchCommand {
  std::shared_ptr<const PipelineEntry> pipeline;
  std::shared_ptr<const BindGroupState> bindings;
  uint32_t params_at = 0;  // into Step::Impl::params
  Grid grid;
};

struct CopyCommand {
  wgpu::Buffer source;
  wgpu::Buffer target;
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t bytes = 0;
};

}  // namespace internal

struct Step::Impl {
  std::vector<std::variant<internal::DispatchCommand, internal::CopyCommand>> commands;
  std::vector<std::byte> params;  // of all dispatches, one after another
  size_t uniform_slots = 0;       // dispatches whose parameters travel through the ring
  // Of all commands; null before the first. Only compared: commands keep what they need alive.
  const internal::DeviceState* device = nullptr;
};

}  // namespace ptero::gpu
