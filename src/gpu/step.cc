// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/step.h"

#include <algorithm>
#include <cstring>

#include "gpu/internal/step_impl.h"

namespace ptero::gpu {
namespace {

using internal::CopyCommand;
using internal::DispatchCommand;

Status check_params(const internal::PipelineEntry& pipeline, std::span<const std::byte> params) {
  const KernelSource& source = *pipeline.key.source;
  PTERO_REJECT_IF(params.size() != source.params_size, invalid_argument,
                  "Size of the parameters ({} bytes) for kernel ({}) differs from its Params ({} "
                  "bytes).",
                  params.size(), source.name, source.params_size);
  return ok_status();
}

Status check_grid(const DispatchCommand& command, Grid grid) {
  const uint32_t limit = command.bindings->device->limits.max_workgroups_per_dimension;
  const uint32_t largest = std::max({grid.x, grid.y, grid.z});
  PTERO_REJECT_IF(largest > limit, invalid_argument,
                  "Grid ({} x {} x {} workgroups) of kernel ({}) exceeds the limit of a dimension "
                  "({}); fold it.",
                  grid.x, grid.y, grid.z, command.pipeline->key.source->name, limit);
  return ok_status();
}

}  // namespace

Step::Step() : impl_(std::make_unique<Impl>()) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

Result<size_t> Step::dispatch(const Kernel& kernel, const BindGroup& bindings,
                              std::span<const std::byte> params, Grid grid) {
  PTERO_REJECT_IF(kernel.entry() == nullptr || bindings.state() == nullptr, invalid_argument,
                  "A dispatch has no kernel or no bindings.");
  // Another variant of the same source may share the bindings; another kernel may not.
  PTERO_REJECT_IF(bindings.state()->pipeline->key.source != kernel.entry()->key.source,
                  invalid_argument, "Kernel ({}) was given the bindings of kernel ({}).",
                  kernel.name(), bindings.state()->pipeline->key.source->name);
  const internal::DeviceState* device = bindings.state()->device.get();
  PTERO_REJECT_IF(kernel.entry()->device != device, invalid_argument,
                  "Kernel ({}) belongs to another device than its bindings.", kernel.name());
  PTERO_REJECT_IF(impl_->device != nullptr && impl_->device != device, invalid_argument,
                  "Kernel ({}) belongs to another device than the commands before it.",
                  kernel.name());
  PTERO_RETURN_IF_ERROR(check_params(*kernel.entry(), params));
  DispatchCommand command{kernel.share(), bindings.share(),
                          static_cast<uint32_t>(impl_->params.size()), grid};
  PTERO_RETURN_IF_ERROR(check_grid(command, grid));
  impl_->params.insert(impl_->params.end(), params.begin(), params.end());
  impl_->uniform_slots += command.pipeline->route == ParamsRoute::uniform ? 1 : 0;
  impl_->commands.emplace_back(std::move(command));
  impl_->device = device;
  return impl_->commands.size() - 1;
}

Result<size_t> Step::copy(const Buffer& source, uint64_t source_offset, const Buffer& target,
                          uint64_t target_offset, uint64_t bytes) {
  PTERO_REJECT_IF(!source.valid() || !target.valid(), invalid_argument,
                  "A copy has no source or no target.");
  const internal::DeviceState* device = source.state()->device.get();
  PTERO_REJECT_IF(target.state()->device.get() != device, invalid_argument,
                  "Target ({}) of a copy belongs to another device than its source ({}).",
                  target.label(), source.label());
  PTERO_REJECT_IF(impl_->device != nullptr && impl_->device != device, invalid_argument,
                  "Source ({}) of a copy belongs to another device than the commands before it.",
                  source.label());
  PTERO_REJECT_IF(source.state() == target.state(), invalid_argument,
                  "A copy would have buffer ({}) as both source and target.", source.label());
  PTERO_REJECT_IF(source_offset % 4 != 0 || target_offset % 4 != 0 || bytes % 4 != 0,
                  invalid_argument,
                  "A copy of {} bytes from ({}, at {}) to ({}, at {}) is not aligned to 4.", bytes,
                  source.label(), source_offset, target.label(), target_offset);
  const auto fits = [bytes](const Buffer& buffer, uint64_t offset) {
    const uint64_t size = buffer.state()->allocated;
    return offset <= size && bytes <= size - offset;
  };
  PTERO_REJECT_IF(!fits(source, source_offset) || !fits(target, target_offset), invalid_argument,
                  "A copy of {} bytes from ({}, at {}) to ({}, at {}) runs past the end.", bytes,
                  source.label(), source_offset, target.label(), target_offset);
  impl_->commands.emplace_back(CopyCommand{source.state()->handle, target.state()->handle,
                                           source_offset, target_offset, bytes});
  impl_->device = device;
  return impl_->commands.size() - 1;
}

Status Step::set_params(size_t command, std::span<const std::byte> params) {
  DispatchCommand* dispatch = command < impl_->commands.size()
                                  ? std::get_if<DispatchCommand>(&impl_->commands[command])
                                  : nullptr;
  PTERO_REJECT_IF(dispatch == nullptr, invalid_argument, "Command ({}) is not a dispatch.",
                  command);
  PTERO_RETURN_IF_ERROR(check_params(*dispatch->pipeline, params));
  if (!params.empty()) {
    std::memcpy(impl_->params.data() + dispatch->params_at, params.data(), params.size());
  }
  return ok_status();
}

Status Step::set_grid(size_t command, Grid grid) {
  DispatchCommand* dispatch = command < impl_->commands.size()
                                  ? std::get_if<DispatchCommand>(&impl_->commands[command])
                                  : nullptr;
  PTERO_REJECT_IF(dispatch == nullptr, invalid_argument, "Command ({}) is not a dispatch.",
                  command);
  PTERO_RETURN_IF_ERROR(check_grid(*dispatch, grid));
  dispatch->grid = grid;
  return ok_status();
}

size_t Step::size() const {
  return impl_->commands.size();
}
void Step::clear() {
  *impl_ = Impl();
}

void Step::reverse_for_test() {
  std::reverse(impl_->commands.begin(), impl_->commands.end());
}

}  // namespace ptero::gpu
