// SPDX-License-Identifier: BSD-3-Clause
// The one place that blocks. Native front ends and tests call it; the core does not link it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "gpu/operation.h"

namespace ptero::gpu {

// Advances `operation` until it is done, sleeping in between. After `timeout` it gives up with
// ErrorCode::timeout and leaves the operation as it is: it may be waited for again.
Status wait(Operation& operation, std::chrono::milliseconds timeout);

// Waits without a limit for as long as `go_on` returns true: asked first, then every 50 ms, never
// once the operation is done. After false the code is cancelled, with the sentence.
Status wait_while(Operation& operation, const std::function<bool()>& go_on,
                  std::string_view sentence);

// The time within which anything that is not a hang has finished, software adapters included.
inline constexpr std::chrono::milliseconds kDefaultTimeout{60'000};

template <typename T>
Result<T> wait_for(Pending<T>& operation, std::chrono::milliseconds timeout = kDefaultTimeout) {
  PTERO_RETURN_IF_ERROR(wait(operation, timeout));
  return operation.take();
}

// For calls that may fail before there is anything to wait for.
template <typename T>
Result<T> wait_for(Result<std::unique_ptr<Pending<T>>> operation,
                   std::chrono::milliseconds timeout = kDefaultTimeout) {
  if (!operation.ok()) {
    return std::move(operation).error();
  }
  return wait_for(**operation, timeout);
}
template <typename T>
Result<T> wait_for(std::unique_ptr<Pending<T>> operation,
                   std::chrono::milliseconds timeout = kDefaultTimeout) {
  return wait_for(*operation, timeout);
}

}  // namespace ptero::gpu
