// SPDX-License-Identifier: BSD-3-Clause
#include <new>

#include "c_api/handles.h"

namespace ptero::c_api {
namespace {

// One a thread: what a thread reads is what it did.
std::string& last_error() {
  thread_local std::string sentence;
  return sentence;
}

}  // namespace

ptero_status keep(ptero_status status, const char* sentence) {
  try {
    last_error() = sentence;
  } catch (const std::bad_alloc&) {
    last_error().clear();
  }
  return status;
}

ptero_status keep(const Error& error) {
  return keep(error_code_info(error.code()).exit_status, error.to_string().c_str());
}

bool DeviceState::enter() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(busy_, true);
}

void DeviceState::leave() {
  while (true) {
    std::vector<std::shared_ptr<void>> dropped;
    {
      const std::lock_guard lock(mutex_);
      if (dropped_.empty()) {
        busy_ = false;
        return;
      }
      dropped.swap(dropped_);
    }
  }
}

void DeviceState::drop(std::shared_ptr<void> object) {
  {
    const std::lock_guard lock(mutex_);
    dropped_.push_back(std::move(object));
    if (busy_) {
      return;
    }
    busy_ = true;
  }
  leave();
}

}  // namespace ptero::c_api

const char* ptero_version() {
  return PTERO_VERSION;
}

const char* ptero_last_error() {
  return ptero::c_api::last_error().c_str();
}
