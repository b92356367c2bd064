// SPDX-License-Identifier: BSD-3-Clause
#include "common/bench.h"

#include <cstdio>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

#include "gpu/native/wait.h"

namespace ptero::bench {

Result<gpu::Adapter> find_adapter() {
  const char* wanted = std::getenv("PTERO_ADAPTER");
  PTERO_ASSIGN_OR_RETURN(const gpu::Instance instance, gpu::Instance::create());
  PTERO_ASSIGN_OR_RETURN(const auto adapters, gpu::list_adapters(instance));
  return gpu::choose_adapter(adapters, wanted != nullptr ? wanted : "");
}

Result<gpu::Device> open_device(gpu::DeviceOptions options) {
  PTERO_ASSIGN_OR_RETURN(const gpu::Adapter adapter, find_adapter());
  return gpu::wait_for(gpu::Device::open(adapter, std::move(options)));
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<Times> time_runs(int runs, const std::function<Status()>& body,
                        std::chrono::milliseconds warm_up) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2 || std::chrono::steady_clock::now() - start < warm_up; ++i) {
    PTERO_RETURN_IF_ERROR(body());
  }
  std::vector<double> walls;
  double processor = std::numeric_limits<double>::max();
  for (int i = 0; i < runs; ++i) {
    const Watch watch;
    PTERO_RETURN_IF_ERROR(body());
    const Times times = watch.stop();
    walls.push_back(times.wall);
    processor = std::min(processor, times.processor);
  }
  return Times{median(std::move(walls)), processor};
}

int finish(std::string_view program, const Status& status) {
  if (status.ok()) {
    return 0;
  }
  fmt::print(stderr, "{}: {}\n", program, status.error().to_string());
  return error_code_info(status.error().code()).exit_status;
}

}  // namespace ptero::bench
