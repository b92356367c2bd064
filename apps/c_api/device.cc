// SPDX-License-Identifier: BSD-3-Clause
#include "c_api/handles.h"
#include "gpu/native/wait.h"

using namespace ptero;
using namespace ptero::c_api;

ptero_status ptero_list_adapters(ptero_adapter_callback each, void* user) {
  return guarded([&]() -> Status {
    PTERO_REJECT_IF(each == nullptr, invalid_argument, "Parameter (each) is NULL.");
    PTERO_ASSIGN_OR_RETURN(const gpu::Instance instance, gpu::Instance::create());
    PTERO_ASSIGN_OR_RETURN(const auto adapters, gpu::list_adapters(instance));
    for (size_t i = 0; i < adapters.size(); ++i) {
      const gpu::AdapterInfo& info = adapters[i].info();
      const std::string type(gpu::adapter_type_name(info.type));
      each(user, i, info.name.c_str(), info.driver.c_str(), type.c_str());
    }
    return ok_status();
  });
}

ptero_status ptero_device_open(const ptero_options* options, ptero_log_callback log, void* user,
                               ptero_device** out) {
  return guarded([&]() -> Status {
    PTERO_RETURN_IF_ERROR(check_pointer(out, "out"));
    PTERO_ASSIGN_OR_RETURN(const ptero_options* const from, or_defaults(options));
    gpu::DeviceOptions device_options;
    device_options.disabled = from->disabled;
    device_options.caps = from->caps;
    device_options.robustness = !from->no_robustness;
    if (log != nullptr) {
      device_options.log = [log, user](LogLevel level, std::string_view sentence) {
        if (level == LogLevel::warning || level == LogLevel::error) {
          log(user, std::string(sentence).c_str());
        }
      };
    }
    // An instance of its own: devices may then work in several threads.
    PTERO_ASSIGN_OR_RETURN(const gpu::Instance instance, gpu::Instance::create(device_options.log));
    PTERO_ASSIGN_OR_RETURN(const auto adapters, gpu::list_adapters(instance));
    PTERO_ASSIGN_OR_RETURN(const gpu::Adapter adapter,
                           gpu::choose_adapter(adapters, from->adapter));
    const LogCallback logs = device_options.log;
    PTERO_ASSIGN_OR_RETURN(gpu::Device device,
                           gpu::wait_for(gpu::Device::open(adapter, std::move(device_options))));
    auto state = std::make_shared<DeviceState>(std::move(device), logs);
    *out = new ptero_device{.state = std::move(state)};
    return ok_status();
  });
}

void ptero_device_free(ptero_device* device) {
  if (is_valid(device)) {
    device->kind = {};
    delete device;  // what was made from it keeps the state
  }
}

const char* ptero_device_name(const ptero_device* device) {
  return is_valid(device) ? device->state->device().adapter().name.c_str() : "";
}
