// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/operation.h"

#include "gpu/internal/pump.h"

namespace ptero::gpu {

bool Operation::advance() {
  if (done_) {
    return true;
  }
  if (internal::InstanceState* instance = wait_target().instance; instance != nullptr) {
    internal::pump_callbacks(*instance);
  }
  done_ = poll();
  if (done_ && completion_) {
    std::exchange(completion_, nullptr)();
  }
  return done_;
}

void Operation::on_done(std::function<void()> completion) {
  if (done_) {
    completion();
    return;
  }
  completion_ = std::move(completion);
}

}  // namespace ptero::gpu
