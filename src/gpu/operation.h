// SPDX-License-Identifier: BSD-3-Clause
// Everything that waits is an Operation. The core never blocks: a front end either calls
// advance() from its own loop (a browser's task queue) or hands the object to gpu::wait() in
// gpu/native/wait.h, the one place that blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ptero::gpu {

namespace internal {
struct InstanceState;
}

// What a native wait may sleep on: futures of one instance. Opaque outside src/gpu.
struct WaitTarget {
  internal::InstanceState* instance = nullptr;  // never owned; null when there is nothing to pump
  std::vector<uint64_t> futures;                // empty: poll instead of sleeping
};

// Threads: an operation is used from the thread of the Instance that it came from.
// Abandoning one (destroying it before it is done) is safe: late callbacks find nobody and do
// nothing, and no memory that they write to goes away before them.
class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  Operation(Operation&&) = default;
  Operation& operator=(Operation&&) = default;
  virtual ~Operation() = default;

  // Delivers pending GPU callbacks and moves on as far as possible without blocking. Returns
  // true once finished, and then stays true. Cheap enough to call in a loop.
  bool advance();
  bool done() const { return done_; }

  // `completion` runs once: inside the advance() that finishes the operation, or right here if
  // it has finished already. It must not destroy the operation.
  void on_done(std::function<void()> completion);

  virtual WaitTarget wait_target() const = 0;

 protected:
  // One attempt to move on; returns true when finished. Called by advance() only.
  virtual bool poll() = 0;

 private:
  bool done_ = false;
  std::function<void()> completion_;
};

// An operation that ends in a value or an error.
template <typename T>
class Pending : public Operation {
 public:
  // The outcome, once. Before done() it is an internal error; a second call too.
  Result<T> take() {
    if (!done()) {
      return make_error(ErrorCode::internal, "The result was taken before the operation was done.");
    }
    if (!outcome_) {
      return make_error(ErrorCode::internal, "The result of the operation was taken twice.");
    }
    Result<T> outcome = std::move(*outcome_);
    outcome_.reset();
    return outcome;
  }

 protected:
  bool finish(Result<T> outcome) {
    outcome_.emplace(std::move(outcome));
    return true;
  }

 private:
  std::optional<Result<T>> outcome_;
};

}  // namespace ptero::gpu
