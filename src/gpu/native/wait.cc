// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/native/wait.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "gpu/internal/instance_state.h"

namespace ptero::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// A sleep is cut into slices so that a completion that reaches us by another way than a future
// (an error, a composed operation) is seen soon. Dawn takes at most 64 futures at once.
constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(20);
constexpr size_t kMaxFutures = 64;

void sleep_on(const WaitTarget& target, std::chrono::nanoseconds at_most) {
  if (target.instance == nullptr || target.futures.empty()) {
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(at_most, std::chrono::microseconds(200)));
    return;
  }
  std::vector<wgpu::FutureWaitInfo> waits;
  for (const uint64_t id : target.futures) {
    if (waits.size() < kMaxFutures) {
      waits.push_back({wgpu::Future{id}, false});
    }
  }
  const wgpu::WaitStatus status = target.instance->handle.WaitAny(
      waits.size(), waits.data(), static_cast<uint64_t>(at_most.count()));
  if (status == wgpu::WaitStatus::Error) {
    // Futures that cannot be slept on (of mixed kinds) are polled instead.
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

Status wait(Operation& operation, std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  while (!operation.advance()) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now());
    PTERO_REJECT_IF(left.count() <= 0, timeout, "The GPU did not answer within {} ms.",
                    timeout.count());
    sleep_on(operation.wait_target(), std::min(left, kSlice));
  }
  return ok_status();
}

Status wait_while(Operation& operation, const std::function<bool()>& go_on,
                  std::string_view sentence) {
  while (!operation.done()) {
    PTERO_REJECT_IF(!go_on(), cancelled, "{}", sentence);
    const Status status = wait(operation, std::chrono::milliseconds(50));
    if (!status.ok() && status.error().code() != ErrorCode::timeout) {
      return status;
    }
  }
  return ok_status();
}

}  // namespace ptero::gpu
