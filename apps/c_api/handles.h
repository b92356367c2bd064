// SPDX-License-Identifier: BSD-3-Clause
// What is behind the handles of ptero.h.
#pragma once

#include <atomic>
#include <concepts>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "c_api/ptero.h"
#include "gpu/device.h"
#include "graph/host_tensor.h"
#include "graph/method.h"
#include "graph/plan_options.h"
#include "llm/generation.h"
#include "llm/model.h"
#include "llm/session.h"
#include "pte/data_map.h"
#include "pte/program.h"

#ifdef __GNUC__
// The type ptero_status has the name of a variable in PTERO_RETURN_IF_ERROR.
#pragma GCC diagnostic ignored "-Wshadow"
#endif

namespace ptero::c_api {

// A device with the lock of everything made from it.
class DeviceState {
 public:
  DeviceState(gpu::Device device, LogCallback log)
      : device_(std::move(device)), log_(std::move(log)) {}

  gpu::Device& device() { return device_; }
  void warn(const std::string& sentence) const {
    if (log_) {
      log_(LogLevel::warning, sentence);
    }
  }

  bool enter();  // false: another call is running
  void leave();
  // Lets go of an object of the device: now, or when the running call ends.
  void drop(std::shared_ptr<void> object);

 private:
  gpu::Device device_;
  LogCallback log_;
  std::mutex mutex_;
  bool busy_ = false;
  std::vector<std::shared_ptr<void>> dropped_;
};

struct ModelState {
  std::shared_ptr<DeviceState> device;
  pte::Program program;
  pte::DataMap data;
  std::shared_ptr<const graph::MethodModel> method;
  std::shared_ptr<const llm::Model> language;  // null: `not_language` says why
  std::string not_language;
};

struct SessionState;

// Marks a handle as what it is, so that another one is noticed.
enum class Kind : uint32_t {
  options = 0x50740001,
  device,
  model,
  session,
  tensor,
  chat,
};

}  // namespace ptero::c_api

struct ptero_options {
  static constexpr auto kKind = ptero::c_api::Kind::options;
  static constexpr const char* kName = "options";
  ptero::c_api::Kind kind = kKind;

  std::string adapter;
  ptero::gpu::FeatureSet disabled;
  ptero::gpu::LimitCaps caps;
  bool no_robustness = false;
  std::vector<std::string> data;
  std::string method = "forward";
  std::string tokenizer;  // a file, as the next
  std::string chat_template;
  std::string chat_template_kwargs;
  ptero::graph::PlanOptions plan;
  ptero::llm::GenerationOptions generation;
  std::optional<uint64_t> seed;  // none: another one each time
};

struct ptero_device {
  static constexpr auto kKind = ptero::c_api::Kind::device;
  static constexpr const char* kName = "device";
  ptero::c_api::Kind kind = kKind;
  std::shared_ptr<ptero::c_api::DeviceState> state;
};

struct ptero_model {
  static constexpr auto kKind = ptero::c_api::Kind::model;
  static constexpr const char* kName = "model";
  ptero::c_api::Kind kind = kKind;
  std::shared_ptr<ptero::c_api::ModelState> state;
};

struct ptero_session {
  static constexpr auto kKind = ptero::c_api::Kind::session;
  static constexpr const char* kName = "session";
  ptero::c_api::Kind kind = kKind;
  std::shared_ptr<ptero::c_api::SessionState> state;
};

struct ptero_tensor {
  static constexpr auto kKind = ptero::c_api::Kind::tensor;
  static constexpr const char* kName = "tensor";
  ptero::c_api::Kind kind = kKind;
  ptero::graph::HostTensor tensor;
};

struct ptero_chat {
  static constexpr auto kKind = ptero::c_api::Kind::chat;
  static constexpr const char* kName = "chat";
  ptero::c_api::Kind kind = kKind;
  std::vector<ptero::text::ChatMessage> messages;
};

namespace ptero::c_api {

struct SessionState {
  std::shared_ptr<ModelState> model;
  std::unique_ptr<llm::Session> language;
  std::unique_ptr<graph::MethodSession> method;  // of what is no language model
  std::vector<ptero_tensor> outputs;
  llm::GenerationResult answer;
  std::atomic<bool> cancelled = false;
};

// Keeps the error for ptero_last_error().
ptero_status keep(const Error& error);
ptero_status keep(ptero_status status, const char* sentence);

// Runs what a function does; whatever goes wrong becomes a status.
template <std::invocable Body>
ptero_status guarded(Body&& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? PTERO_OK : keep(status.error());
  } catch (const std::bad_alloc&) {
    return keep(PTERO_OUT_OF_MEMORY, "The process has no memory left.");
  } catch (const std::exception& error) {
    return keep(PTERO_INTERNAL, error.what());
  } catch (...) {
    return keep(PTERO_INTERNAL, "Something that is no C++ exception was thrown.");
  }
}

template <typename Handle>
bool is_valid(const Handle* handle) {
  return handle != nullptr && handle->kind == Handle::kKind;
}

template <typename Handle>
Status check(const Handle* handle) {
  PTERO_REJECT_IF(handle == nullptr, invalid_argument, "The {} is NULL.", Handle::kName);
  PTERO_REJECT_IF(handle->kind != Handle::kKind, invalid_argument,
                  "What was given as a {} is another handle, or was freed.", Handle::kName);
  return ok_status();
}
inline Status check_pointer(const void* pointer, const char* name) {
  PTERO_REJECT_IF(pointer == nullptr, invalid_argument, "Parameter ({}) is NULL.", name);
  return ok_status();
}

// The options, or those that NULL stands for.
Result<const ptero_options*> or_defaults(const ptero_options* options);

inline const std::shared_ptr<DeviceState>& device_of(const ptero_device& handle) {
  return handle.state;
}
inline const std::shared_ptr<DeviceState>& device_of(const ptero_model& handle) {
  return handle.state->device;
}
inline const std::shared_ptr<DeviceState>& device_of(const ptero_session& handle) {
  return handle.state->model->device;
}

// The same as guarded() for what uses a device, with the state of the handle: a callback may free
// the handle.
template <typename Handle, typename Body>
ptero_status in_turn(const Handle* handle, Body&& body) noexcept {
  if (const ptero_status status = guarded([&] { return check(handle); }); status != PTERO_OK) {
    return status;
  }
  const std::shared_ptr<DeviceState> device = device_of(*handle);
  if (!device->enter()) {
    return keep(PTERO_BUSY,
                "Another call of this device is running, in another thread or around this "
                "callback.");
  }
  const ptero_status status = guarded([&] {
    const auto state = handle->state;
    return body(*state);
  });
  device->leave();
  return status;
}

// Frees a handle of something that belongs to a device.
template <typename Handle>
void end(Handle* handle) noexcept {
  if (is_valid(handle)) {
    handle->kind = {};
    const std::shared_ptr<DeviceState> device = device_of(*handle);
    device->drop(std::move(handle->state));
    delete handle;
  }
}

}  // namespace ptero::c_api
