// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/internal/readback.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace ptero::gpu::internal {

std::optional<StagingPool::Staging> StagingPool::take(uint64_t size) {
  const auto best = std::min_element(free_.begin(), free_.end(), [&](const auto& a, const auto& b) {
    const auto cost = [&](const Staging& s) { return s.size < size ? UINT64_MAX : s.size; };
    return cost(a) < cost(b);
  });
  if (best == free_.end() || best->size < size || best->size / 2 > size) {
    return std::nullopt;
  }
  Staging staging = std::move(*best);
  free_.erase(best);
  return staging;
}

std::optional<StagingPool::Staging> StagingPool::put(Staging staging) {
  free_.push_back(std::move(staging));
  if (free_.size() <= kMaxEntries) {
    return std::nullopt;
  }
  Staging oldest = std::move(free_.front());
  free_.erase(free_.begin());
  return oldest;
}

namespace {

// Maps a staging buffer and copies the ranges to the host.
class Readback : public Pending<ReadData> {
 public:
  Readback(std::shared_ptr<DeviceState> state, StagingPool::Staging staging,
           std::vector<ReadPart> parts, uint64_t used)
      : state_(std::move(state)), staging_(std::move(staging)), parts_(std::move(parts)) {
    const auto fault = state_->hit(FaultPoint::map);
    hung_ = fault == FaultKind::hang;
    failed_ = fault == FaultKind::fail;
    future_ = staging_.buffer
                  .MapAsync(wgpu::MapMode::Read, 0, used, callback_mode(),
                            [answer = answer_](wgpu::MapAsyncStatus status, wgpu::StringView text) {
                              answer->arrived = true;
                              answer->ok = status == wgpu::MapAsyncStatus::Success;
                              answer->message = to_string(text);
                            })
                  .id;
  }

  ~Readback() override {
    if (staging_.buffer != nullptr) {
      discard();  // abandoned: a buffer with a map in flight is not used again
    }
  }

  WaitTarget wait_target() const override {
    WaitTarget target{state_->instance.get(), {}};
    if (!hung_) {
      target.futures.push_back(future_);
    }
    return target;
  }

 private:
  struct Answer {
    bool arrived = false;
    bool ok = false;
    std::string message;
  };

  void discard() {
    state_->count_release(MemoryKind::staging, staging_.size);
    staging_.buffer.Destroy();
    staging_.buffer = nullptr;
  }

  bool poll() override {
    if (state_->errors->lost()) {
      discard();
      return finish(std::move(state_->check()).error());
    }
    if (hung_ || !answer_->arrived) {
      return false;
    }
    // An error of the work before makes the bytes worthless, even when the map succeeds.
    if (Status status = state_->check(); !status.ok()) {
      discard();
      return finish(std::move(status).error());
    }
    if (failed_ || !answer_->ok) {
      discard();
      return finish(make_error(ErrorCode::internal, "Results cannot be read back from the GPU: {}",
                               failed_ ? "injected fault" : answer_->message));
    }
    ReadData data;
    for (const ReadPart& part : parts_) {
      const uint64_t mapped = *checked_round_up<uint64_t>(part.size, 4);
      const void* bytes = staging_.buffer.GetConstMappedRange(part.offset, mapped);
      if (bytes == nullptr) {
        discard();
        return finish(make_error(ErrorCode::internal,
                                 "Results cannot be read back from the GPU: nothing is mapped."));
      }
      std::vector<std::byte> copy(part.size);
      std::memcpy(copy.data(), bytes, part.size);
      state_->stats.bytes_read_back += part.size;
      data.push_back(std::move(copy));
    }
    staging_.buffer.Unmap();
    if (const auto surplus = state_->staging.put(std::move(staging_))) {
      state_->count_release(MemoryKind::staging, surplus->size);
    }
    staging_.buffer = nullptr;
    return finish(std::move(data));
  }

  std::shared_ptr<DeviceState> state_;
  StagingPool::Staging staging_;
  std::vector<ReadPart> parts_;
  std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
  uint64_t future_ = 0;
  bool hung_ = false;
  bool failed_ = false;
};

class Finished : public Pending<void> {
 public:
  explicit Finished(std::shared_ptr<DeviceState> state) : state_(std::move(state)) {
    future_ = state_->queue
                  .OnSubmittedWorkDone(
                      callback_mode(),
                      [answer = answer_](wgpu::QueueWorkDoneStatus status, wgpu::StringView) {
                        answer->arrived = true;
                        answer->ok = status == wgpu::QueueWorkDoneStatus::Success;
                      })
                  .id;
  }

  WaitTarget wait_target() const override { return {state_->instance.get(), {future_}}; }

 private:
  struct Answer {
    bool arrived = false;
    bool ok = false;
  };

  bool poll() override {
    if (state_->errors->lost()) {
      return finish(std::move(state_->check()).error());
    }
    if (!answer_->arrived) {
      return false;
    }
    if (Status status = state_->check(); !status.ok()) {
      return finish(std::move(status).error());
    }
    if (!answer_->ok) {
      return finish(make_error(ErrorCode::internal, "The GPU did not finish the submitted work."));
    }
    return finish(ok_status());
  }

  std::shared_ptr<DeviceState> state_;
  std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
  uint64_t future_ = 0;
};

}  // namespace

Result<StagingPool::Staging> take_staging(DeviceState& state, uint64_t bytes) {
  if (auto pooled = state.staging.take(bytes)) {
    return *std::move(pooled);
  }
  PTERO_ASSIGN_OR_RETURN(wgpu::Buffer buffer,
                         state.allocate("staging", bytes, MemoryKind::staging,
                                        wgpu::BufferUsage::MapRead | wgpu::BufferUsage::CopyDst));
  return StagingPool::Staging{std::move(buffer), bytes};
}

std::unique_ptr<Pending<ReadData>> map_staging(std::shared_ptr<DeviceState> state,
                                               StagingPool::Staging staging,
                                               std::vector<ReadPart> parts, uint64_t used) {
  return std::make_unique<Readback>(std::move(state), std::move(staging), std::move(parts), used);
}

std::unique_ptr<Pending<void>> wait_for_queue(std::shared_ptr<DeviceState> state) {
  return std::make_unique<Finished>(std::move(state));
}

}  // namespace ptero::gpu::internal
