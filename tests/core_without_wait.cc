// SPDX-License-Identifier: BSD-3-Clause
// Linked with every object of the core and without ptero_gpu_native: that this program links shows
// that nothing in the core blocks. Run, it drives a device the way a browser would: by advancing.
#include <cstdio>

#include "gpu/selfcheck/selfcheck.h"

using namespace ptero;

int main() {
  const Result<gpu::Instance> instance = gpu::Instance::create();
  const auto adapters = instance.ok() ? gpu::list_adapters(*instance)
                                      : Result<std::vector<gpu::Adapter>>(instance.error());
  const auto adapter =
      adapters.ok() ? gpu::choose_adapter(*adapters, "") : Result<gpu::Adapter>(adapters.error());
  if (!adapter.ok()) {
    std::printf("no adapter: %s\n", adapter.error().to_string().c_str());
    return 1;
  }
  std::printf("adapter: %s\n", adapter->info().name.c_str());
  const auto drive = [](gpu::Operation& operation) {
    for (long turns = 0; turns < 100'000'000; ++turns) {
      if (operation.advance()) {
        return true;
      }
    }
    return false;
  };
  const auto opening = gpu::Device::open(*adapter, {});
  if (!drive(*opening)) {
    std::puts("the device does not open");
    return 1;
  }
  Result<gpu::Device> device = opening->take();
  if (!device.ok()) {
    std::printf("no device: %s\n", device.error().to_string().c_str());
    return 1;
  }
  bool completed = false;
  const auto checking = gpu::self_check(*device);
  checking->on_done([&completed] { completed = true; });
  const bool done = drive(*checking);
  const auto report = checking->take();
  const bool passed = done && completed && report.ok() && report->passed();
  std::puts(passed ? "self-check passed without a blocking wait" : "self-check failed");
  return passed ? 0 : 1;
}
