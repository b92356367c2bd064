// SPDX-License-Identifier: BSD-3-Clause
// A session: the activations, caches and remembered plans of one user of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/checked.h"
#include "base/result.h"
#include "gpu/device.h"
#include "gpu/step.h"
#include "graph/memory_report.h"
#include "graph/model.h"
#include "graph/planner.h"

namespace ptero::graph {

struct SessionOptions {
  // Fills every activation with NaN before each run, so that a kernel that leaves part of its
  // output unwritten shows. For tests.
  bool poison_activations = false;
  // Runs every dispatch in a pass of its own and keeps the time that the GPU took for each; see
  // kernel_times(). Slower, and needs gpu::Feature::timestamps.
  bool profile = false;
};

// One input of a run: a tensor's live shape and its dense elements in the graph's own type, in host
// memory or in a buffer of the same device; or the value of a SymInt. Host bytes are read during
// run() only; a buffer stays as it is until the run is done, and holds whole words.
struct RunInput {
  LiveInput live;
  std::span<const std::byte> bytes;
  const gpu::Buffer* buffer = nullptr;
};

struct RunOutput {
  Shape shape;                    // live
  std::vector<std::byte> bytes;   // dense, in the graph's own type; empty for a SymInt, and for
                                  // what went to a buffer
  std::optional<int64_t> scalar;  // of a SymInt
};

// Work that goes to the device in one submission with the end of a run, behind it, and what is read
// back of it: a submission of its own costs tens of microseconds. Outlives the run.
struct FollowUp {
  const gpu::Step* step = nullptr;
  std::vector<gpu::ReadRange> reads;
  // Once the run is done. Null when that had to be read back itself: then the caller submits it.
  std::unique_ptr<gpu::Pending<gpu::ReadData>> data;
};

// Buffers hold whole words of 4 bytes.
constexpr uint64_t whole_words(uint64_t bytes) {
  return ceil_div<uint64_t>(bytes, 4) * 4;
}

// Threads: as the device. One run at a time; the next may start when the one before is done or
// was dropped. Caches keep what runs leave in them.
class GraphSession {
 public:
  static Result<std::unique_ptr<GraphSession>> create(std::shared_ptr<const GraphModel> model,
                                                      SessionOptions options = {});
  ~GraphSession();

  // Plans (or finds the plan), compiles what is new, uploads, runs in one compute pass and reads
  // the outputs back. The session outlives the operation.
  // `outputs`: a buffer of the same device for each tensor output that shall stay there, null for
  // those to read back; empty: read all back. Buffers hold whole words and are complete, in the
  // order of the queue, once the operation is done.
  Result<std::unique_ptr<gpu::Pending<std::vector<RunOutput>>>> run(
      std::span<const RunInput> inputs, std::vector<const gpu::Buffer*> outputs = {},
      FollowUp* follow_up = nullptr);

  // Writes zeros into every cache.
  Status reset();

  // The caches, in the order of their storages.
  std::vector<const gpu::Buffer*> caches() const;

  // What the model and this session plan to take.
  BytesByKind planned_bytes();

  const GraphModel& model() const { return *model_; }
  const Planner& planner() const { return planner_; }
  // Of the last run that was started, so far: dispatches, and how often it was split to read a
  // SymInt back.
  size_t last_dispatches() const { return last_dispatches_; }
  size_t last_splits() const { return last_splits_; }
  // With SessionOptions::profile: of all dispatches since the session was made, or since the last
  // clear_kernel_times().
  const std::vector<gpu::KernelTime>& kernel_times() const { return kernel_times_; }
  void clear_kernel_times() { kernel_times_.clear(); }

 private:
  friend class SessionRun;
  // A plan with its GPU objects.
  struct Ready {
    std::shared_ptr<const Plan> plan;
    gpu::Step step;
  };

  explicit GraphSession(std::shared_ptr<const GraphModel> model, SessionOptions options);
  Status allocate();
  void place_scratch();
  const gpu::Buffer& storage(uint32_t id) const;
  Status check_buffers(std::span<const RunInput> inputs,
                       std::span<const gpu::Buffer* const> outputs, const Plan& plan) const;
  // Host bytes at once; what is in buffers by these copies.
  Status write_inputs(std::span<const RunInput> inputs, gpu::Step& copies);
  Status write_slots(const PlannedRun& run);
  Status follow_scalars(const PlannedRun& run, Ready& ready) const;
  Status poison();
  Status reserve_scratch(const Plan& plan);
  Result<Ready*> make_ready(std::shared_ptr<const Plan> plan,
                            const std::vector<gpu::Kernel>& kernels);

  gpu::Device device_;
  std::shared_ptr<const GraphModel> model_;
  SessionOptions options_;
  Planner planner_;
  std::vector<gpu::Buffer> buffers_;  // by storage; empty where the model has weights
  std::vector<gpu::Buffer> scratch_;  // slot i serves Plan::scratch[i] of every plan
  std::unordered_map<const Plan*, Ready> ready_;
  std::vector<int32_t> slots_;  // as last written
  size_t last_dispatches_ = 0;
  size_t last_splits_ = 0;
  std::vector<gpu::KernelTime> kernel_times_;
};

}  // namespace ptero::graph
