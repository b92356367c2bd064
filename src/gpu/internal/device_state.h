// SPDX-License-Identifier: BSD-3-Clause
// What is behind the handles of device.h. Only src/gpu includes this.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <webgpu/webgpu_cpp.h>

#include "gpu/device.h"
#include "gpu/internal/instance_state.h"
#include "gpu/pass_times.h"

namespace ptero::gpu::internal {

// Where callbacks leave errors. Shared with the callbacks, so that it outlives late ones.
class ErrorSink {
 public:
  void report(ErrorCode code, std::string message);
  // A loss is remembered for good.
  void report_loss(std::string reason);

  // The first error since the last call; the loss, if there was one, every time.
  Status take();
  bool lost() const;

 private:
  mutable std::mutex mutex_;  // a driver may call back from a thread of its own
  std::optional<Error> first_;
  std::optional<std::string> loss_;
};

// A free mappable buffer is used again for a readback of at least half its size.
class StagingPool {
 public:
  struct Staging {
    wgpu::Buffer buffer;
    uint64_t size = 0;
  };
  std::optional<Staging> take(uint64_t size);
  // Returns the entry that no longer fits in the pool, if any.
  std::optional<Staging> put(Staging staging);

 private:
  static constexpr size_t kMaxEntries = 8;
  std::vector<Staging> free_;
};

// Parameters of kernels for which immediates are off or too small. Every submit starts over at
// offset 0: WriteBuffer is ordered after the submits before it, so nothing is overwritten early.
struct UniformRing {
  wgpu::Buffer buffer;
  wgpu::BindGroupLayout layout;
  wgpu::BindGroup group;
  uint64_t capacity = 0;
};
// One slot: the window that the dynamic offset moves, and the largest Params of a kernel.
inline constexpr uint64_t kUniformSlot = kUniformSlotBytes;

// Query 2i and 2i + 1 surround pass i (or, of a profile, dispatch i).
struct Queries {
  // WebGPU allows 4096 queries a set.
  static constexpr uint32_t kPassesPerSet = 2048;
  std::vector<wgpu::QuerySet> sets;
  uint32_t count = 0;
};

// What start_pass_times() asked for.
struct PassTimer {
  Queries queries;
  std::vector<PassTime> profiled;  // times that profiles brought meanwhile
};

struct DeviceState : std::enable_shared_from_this<DeviceState> {
  ~DeviceState();

  std::shared_ptr<InstanceState> instance;
  AdapterInfo adapter;
  FeatureSet features;
  Limits limits;
  LogCallback log;
  std::shared_ptr<FaultPlan> faults;
  std::shared_ptr<ErrorSink> errors = std::make_shared<ErrorSink>();
  wgpu::Device device;
  wgpu::Queue queue;
  DeviceStats stats;
  std::unordered_map<KernelKey, std::shared_ptr<PipelineEntry>> pipelines;
  std::map<std::string, wgpu::BindGroupLayout> storage_layouts;  // key: 'r'/'w' per binding
  UniformRing uniforms;
  StagingPool staging;
  std::unique_ptr<PassTimer> pass_timer;  // while passes are timed

  Status check() const { return errors->take(); }
  // What to do at this point, if a test asked for it. Loses the device here when that is it.
  std::optional<FaultKind> hit(FaultPoint point);
  void lose(std::string_view reason);

  // Accounting at the place where memory is made and freed.
  void count_allocation(MemoryKind kind, uint64_t bytes);
  void count_release(MemoryKind kind, uint64_t bytes);

  // Makes a raw buffer after checking size and faults; counted.
  Result<wgpu::Buffer> allocate(std::string_view label, uint64_t bytes, MemoryKind kind,
                                wgpu::BufferUsage usage);
  Status reserve_uniforms(uint64_t bytes);
  Status reserve_uniforms_if_needed(size_t slots);
  wgpu::BindGroupLayout storage_layout(const KernelSource& source);
};

struct BufferState {
  std::shared_ptr<DeviceState> device;
  wgpu::Buffer handle;
  std::string label;
  uint64_t size = 0;
  uint64_t allocated = 0;
  MemoryKind kind = MemoryKind::other;

  ~BufferState();
};

struct PipelineEntry {
  KernelKey key;
  const DeviceState* device = nullptr;  // only compared
  ParamsRoute route = ParamsRoute::none;
  wgpu::BindGroupLayout layout;  // group 0
  wgpu::ComputePipeline pipeline;
  std::optional<Error> error;
  std::string module_error;  // the compiler's own words, when the module is at fault
  bool hung = false;         // a test asked for a completion that never arrives
  // Of the callbacks that are due; 0 once one has run, as a wait on a spent future returns at once.
  uint64_t scope_future = 0;
  uint64_t pipeline_future = 0;

  bool pending() const { return scope_future != 0 || pipeline_future != 0 || hung; }
};

struct BindGroupState {
  std::shared_ptr<DeviceState> device;
  std::shared_ptr<const PipelineEntry> pipeline;
  wgpu::BindGroup handle;
};

}  // namespace ptero::gpu::internal
