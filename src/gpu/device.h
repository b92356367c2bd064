// SPDX-License-Identifier: BSD-3-Clause
// A Device: buffers, kernels, recorded steps and readbacks on one adapter.
//
// Threads: an instance, its devices and everything made from them are used from one thread at a
// time, because waiting for any of them runs the callbacks of all. Another thread may work with an
// instance of its own.
// Ownership: everything made from a device keeps it alive, so order of destruction is free.
// Errors: GPU errors arrive late. Each is collected and returned by the next call that returns a
// Status or Result, or by the pending operation that it spoils. After a loss every call returns
// device_lost; make a new Device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "gpu/adapter.h"
#include "gpu/fault.h"
#include "gpu/feature.h"
#include "gpu/operation.h"
#include "gpu/wgsl.h"

namespace ptero::gpu {

namespace internal {
struct BindGroupState;
struct BufferState;
struct DeviceState;
struct PipelineEntry;
}  // namespace internal

class Step;

// What a buffer is for; only the accounting looks at it.
enum class MemoryKind : uint8_t { weights, cache, activations, scratch, staging, uniforms, other };
inline constexpr size_t kMemoryKindCount = 7;
std::string_view memory_kind_name(MemoryKind kind);

// Parameters of kernels that are no immediates: bytes of one kernel's, and of the buffer that holds
// `bytes` of them, which grows by doubling.
inline constexpr uint64_t kUniformSlotBytes = 512;
constexpr uint64_t uniform_ring_bytes(uint64_t bytes) {
  uint64_t capacity = 64 * kUniformSlotBytes;
  while (capacity < bytes) {
    capacity *= 2;
  }
  return capacity;
}

// Tighter limits than the adapter's, for tests and for planning for smaller devices; 0 keeps the
// adapter's. Enforced by Ptero, so they may lie below WebGPU's guaranteed minima.
struct LimitCaps {
  uint64_t max_buffer_size = 0;
  uint64_t max_storage_binding_size = 0;
  uint32_t max_storage_buffers_per_stage = 0;
  uint32_t max_invocations_per_workgroup = 0;
  uint32_t max_workgroups_per_dimension = 0;
};

struct DeviceOptions {
  FeatureSet disabled;  // off-switches; everything else that the adapter offers is switched on
  LimitCaps caps;
  // Bounds checks in shaders. Off is faster natively and leaves kernels to clamp what comes from
  // data; a browser always checks.
  bool robustness = true;
  LogCallback log;
  std::shared_ptr<FaultPlan> faults;  // tests only
};

// Counters since the device was made. Bytes are those allocated, after rounding.
struct DeviceStats {
  uint64_t buffers_live = 0;
  uint64_t buffers_created = 0;
  uint64_t scratch_live = 0;
  uint64_t bytes_live = 0;
  uint64_t bytes_peak = 0;
  std::array<uint64_t, kMemoryKindCount> bytes_by_kind = {};  // live
  std::array<uint64_t, kMemoryKindCount> peak_by_kind = {};
  uint64_t pipelines_created = 0;
  std::array<uint64_t, kFeatureCount> pipelines_by_feature = {};  // that use the feature
  uint64_t bind_groups_created = 0;
  uint64_t submits = 0;
  uint64_t passes = 0;
  uint64_t dispatches = 0;
  uint64_t copies = 0;
  uint64_t bytes_written = 0;    // host to device, parameters included
  uint64_t bytes_read_back = 0;  // device to host
};

// A GPU buffer: storage, source and target of copies. Zero-filled when made. Move-only owner;
// destroying it frees the memory once submitted work is through, and a step that still names it
// then fails with an error.
class Buffer {
 public:
  Buffer();  // empty: valid() is false
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  bool valid() const { return state_ != nullptr; }
  uint64_t size() const;  // bytes as asked for; 0 when empty
  MemoryKind kind() const;
  std::string_view label() const;

  explicit Buffer(std::unique_ptr<internal::BufferState> state);
  const internal::BufferState* state() const { return state_.get(); }

 private:
  std::unique_ptr<internal::BufferState> state_;
};

// Bytes [offset, offset + size) of a buffer, as one binding of a kernel. size 0: to the end.
// offset is a multiple of Limits::min_storage_offset_alignment, size of 4.
struct Binding {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A compiled pipeline. Copyable handle; two equal keys give the same one.
class Kernel {
 public:
  Kernel() = default;
  std::string_view name() const;
  const KernelKey& key() const;
  uint32_t params_size() const;
  bool operator==(const Kernel&) const = default;

  explicit Kernel(std::shared_ptr<const internal::PipelineEntry> entry)
      : entry_(std::move(entry)) {}
  const internal::PipelineEntry* entry() const { return entry_.get(); }
  std::shared_ptr<const internal::PipelineEntry> share() const { return entry_; }

 private:
  std::shared_ptr<const internal::PipelineEntry> entry_;
};

// The buffers of one dispatch, checked once and used in any number of steps. Copyable handle.
// Does not own the buffers.
class BindGroup {
 public:
  BindGroup() = default;

  explicit BindGroup(std::shared_ptr<const internal::BindGroupState> state)
      : state_(std::move(state)) {}
  const internal::BindGroupState* state() const { return state_.get(); }
  std::shared_ptr<const internal::BindGroupState> share() const { return state_; }

 private:
  std::shared_ptr<const internal::BindGroupState> state_;
};

struct ReadRange {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;  // multiple of 4
  uint64_t size = 0;    // bytes, any number above 0
};
using ReadData = std::vector<std::vector<std::byte>>;  // one entry per range, in order

struct KernelTime {
  std::string_view kernel;  // valid as long as the kernel's source
  uint64_t nanoseconds = 0;
};

class Device {
 public:
  // Fails with unsupported when the adapter cannot give a device at all. A device that cannot be
  // made with the optional features is tried again without them, with a warning.
  static std::unique_ptr<Pending<Device>> open(const Adapter& adapter, DeviceOptions options);

  const AdapterInfo& adapter() const;
  FeatureSet features() const;   // switched on
  const Limits& limits() const;  // after LimitCaps
  const DeviceStats& stats() const;

  // The first GPU error since the last call, if any; a loss stays.
  Status check() const;

  // `bytes` is above 0; the allocation is rounded up to a multiple of 4.
  Result<Buffer> create_buffer(std::string label, uint64_t bytes, MemoryKind kind);

  // Copies host bytes in, ordered after everything submitted so far and before what follows.
  // offset is a multiple of 4; a size that is not is padded with zeros up to one.
  Status write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> bytes);

  // Compiles what is not compiled yet, all at once and in parallel. The kernels come in the order
  // of the keys; the first failure is the error, and a later try compiles again.
  std::unique_ptr<Pending<std::vector<Kernel>>> prepare(std::vector<KernelKey> keys);

  // Checks and binds one buffer per binding of the kernel, in order. A buffer that the kernel
  // would both read through one binding and write through another is refused here, with names,
  // as WebGPU has no such dispatch: an in-place kernel binds it once.
  Result<BindGroup> bind(const Kernel& kernel, std::span<const Binding> bindings);

  // Encodes and submits: one compute pass, interrupted only by copies.
  Status submit(const Step& step);
  Status submit(std::span<const Step* const> steps);  // several as one
  // The same (step may be null), then copies the ranges out. Read back when done.
  Result<std::unique_ptr<Pending<ReadData>>> submit_and_read(const Step* step,
                                                             std::span<const ReadRange> ranges);
  Result<std::unique_ptr<Pending<ReadData>>> submit_and_read(std::span<const Step* const> steps,
                                                             std::span<const ReadRange> ranges);
  // The same with one pass per dispatch, timed by the GPU. Needs Feature::timestamps. Entry i
  // belongs to the i-th dispatch of the step.
  Result<std::unique_ptr<Pending<std::vector<KernelTime>>>> submit_profiled(const Step& step);

  Result<std::unique_ptr<Pending<ReadData>>> read(const Buffer& buffer, uint64_t offset,
                                                  uint64_t size);
  // Done when everything submitted so far is.
  Result<std::unique_ptr<Pending<void>>> finished();

  // Takes the device down, as a driver crash would. For tests.
  void lose_for_test(std::string_view reason);

  explicit Device(std::shared_ptr<internal::DeviceState> state) : state_(std::move(state)) {}
  internal::DeviceState& state() const { return *state_; }

 private:
  std::shared_ptr<internal::DeviceState> state_;
};

}  // namespace ptero::gpu
