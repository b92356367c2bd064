// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <cstring>

#include "base/checked.h"
#include "gpu/internal/device_state.h"

namespace ptero::gpu {
namespace internal {

Result<wgpu::Buffer> DeviceState::allocate(std::string_view label, uint64_t bytes, MemoryKind kind,
                                           wgpu::BufferUsage usage) {
  PTERO_RETURN_IF_ERROR(check(), "while creating buffer {}", label);
  PTERO_REJECT_IF(bytes > limits.max_buffer_size, out_of_memory,
                  "Size ({} bytes) of buffer ({}) exceeds the limit of the adapter ({} bytes).",
                  bytes, label, limits.max_buffer_size);
  if (const auto fault = hit(FaultPoint::buffer)) {
    PTERO_RETURN_IF_ERROR(check(), "while creating buffer {}", label);
    return make_error(ErrorCode::out_of_memory,
                      "The GPU has no memory left for buffer ({}) of {} bytes (injected fault).",
                      label, bytes);
  }
  wgpu::BufferDescriptor descriptor;
  descriptor.label = label;
  descriptor.size = bytes;
  descriptor.usage = usage;
  wgpu::Buffer buffer = device.CreateBuffer(&descriptor);
  // Natively running out of memory is reported inside CreateBuffer: say so here, where it is
  // known which buffer it was.
  if (Status status = check(); !status.ok()) {
    if (buffer != nullptr) {
      buffer.Destroy();
    }
    return std::move(std::move(status).error().add_context(
        fmt::format("while creating buffer {} of {} bytes", label, bytes)));
  }
  PTERO_REJECT_IF(buffer == nullptr, out_of_memory,
                  "The GPU has no memory left for buffer ({}) of {} bytes.", label, bytes);
  count_allocation(kind, bytes);
  return buffer;
}

Status DeviceState::reserve_uniforms(uint64_t bytes) {
  if (bytes <= uniforms.capacity) {
    return ok_status();
  }
  const uint64_t capacity = uniform_ring_bytes(bytes);
  PTERO_ASSIGN_OR_RETURN(wgpu::Buffer buffer,
                         allocate("uniform ring", capacity, MemoryKind::uniforms,
                                  wgpu::BufferUsage::Uniform | wgpu::BufferUsage::CopyDst));
  if (uniforms.layout == nullptr) {
    wgpu::BindGroupLayoutEntry entry;
    entry.binding = 0;
    entry.visibility = wgpu::ShaderStage::Compute;
    entry.buffer.type = wgpu::BufferBindingType::Uniform;
    entry.buffer.hasDynamicOffset = true;
    wgpu::BindGroupLayoutDescriptor layout;
    layout.label = "uniform ring";
    layout.entryCount = 1;
    layout.entries = &entry;
    uniforms.layout = device.CreateBindGroupLayout(&layout);
  }
  wgpu::BindGroupEntry entry;
  entry.binding = 0;
  entry.buffer = buffer;
  entry.offset = 0;
  entry.size = kUniformSlot;
  wgpu::BindGroupDescriptor group;
  group.label = "uniform ring";
  group.layout = uniforms.layout;
  group.entryCount = 1;
  group.entries = &entry;
  uniforms.group = device.CreateBindGroup(&group);
  if (uniforms.buffer != nullptr) {
    count_release(MemoryKind::uniforms, uniforms.capacity);
  }
  uniforms.buffer = std::move(buffer);  // submitted work keeps the old one
  uniforms.capacity = capacity;
  return ok_status();
}

BufferState::~BufferState() {
  handle.Destroy();
  device->count_release(kind, allocated);
}

}  // namespace internal

Buffer::Buffer(std::unique_ptr<internal::BufferState> state) : state_(std::move(state)) {}
Buffer::Buffer() = default;
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer& Buffer::operator=(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;
uint64_t Buffer::size() const {
  return state_ ? state_->size : 0;
}
MemoryKind Buffer::kind() const {
  return state_ ? state_->kind : MemoryKind::other;
}
std::string_view Buffer::label() const {
  return state_ ? std::string_view(state_->label) : std::string_view();
}

Result<Buffer> Device::create_buffer(std::string label, uint64_t bytes, MemoryKind kind) {
  PTERO_REJECT_IF(bytes == 0, invalid_argument, "Size (0 bytes) of buffer ({}) is not above 0.",
                  label);
  const auto allocated = checked_round_up<uint64_t>(bytes, 4);
  PTERO_REJECT_IF(!allocated, out_of_memory,
                  "Size ({} bytes) of buffer ({}) exceeds the limit of the adapter ({} bytes).",
                  bytes, label, state_->limits.max_buffer_size);
  PTERO_ASSIGN_OR_RETURN(wgpu::Buffer handle,
                         state_->allocate(label, *allocated, kind,
                                          wgpu::BufferUsage::Storage | wgpu::BufferUsage::CopySrc |
                                              wgpu::BufferUsage::CopyDst));
  auto buffer = std::make_unique<internal::BufferState>();
  buffer->device = state_;
  buffer->handle = std::move(handle);
  buffer->label = std::move(label);
  buffer->size = bytes;
  buffer->allocated = *allocated;
  buffer->kind = kind;
  return Buffer(std::move(buffer));
}

Status Device::write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> bytes) {
  PTERO_RETURN_IF_ERROR(state_->check(), "while writing to buffer {}", buffer.label());
  PTERO_REJECT_IF(!buffer.valid(), invalid_argument, "The buffer to write to is empty.");
  PTERO_REJECT_IF(buffer.state()->device != state_, invalid_argument,
                  "Buffer ({}) to write to belongs to another device.", buffer.label());
  PTERO_REJECT_IF(offset % 4 != 0, invalid_argument,
                  "Offset ({}) of a write to buffer ({}) is not a multiple of 4.", offset,
                  buffer.label());
  PTERO_REJECT_IF(offset > buffer.size() || bytes.size() > buffer.size() - offset, invalid_argument,
                  "A write of {} bytes at {} runs past the end of buffer ({}, {} bytes).",
                  bytes.size(), offset, buffer.label(), buffer.size());
  if (bytes.empty()) {
    return ok_status();
  }
  const wgpu::Buffer& handle = buffer.state()->handle;
  const size_t whole = bytes.size() / 4 * 4;
  if (whole > 0) {
    state_->queue.WriteBuffer(handle, offset, bytes.data(), whole);
  }
  if (whole < bytes.size()) {
    std::array<std::byte, 4> tail = {};
    std::memcpy(tail.data(), bytes.data() + whole, bytes.size() - whole);
    state_->queue.WriteBuffer(handle, offset + whole, tail.data(), tail.size());
  }
  state_->stats.bytes_written += bytes.size();
  return state_->check();
}

}  // namespace ptero::gpu
