// SPDX-License-Identifier: BSD-3-Clause
// How long the GPU works: every compute pass between two calls, timed by the GPU itself. Two time
// stamps a pass cost next to nothing, so this measures a run as it is; Device::submit_profiled()
// tells kernels apart and is slower.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "gpu/operation.h"

namespace ptero::gpu {

// Nanoseconds of the GPU's own clock, which starts anywhere.
struct PassTime {
  uint64_t begin = 0;
  uint64_t end = 0;  // not before `begin`
  // Of a profiled step, which has a pass for each dispatch; else empty. Valid as long as the
  // kernel's source.
  std::string_view kernel;
};

// Passes submitted from now on are timed; what an earlier start collected is forgotten. Code
// unsupported without Feature::timestamps.
Status start_pass_times(Device& device);

// Stops, and reads back the times of all passes in the order of submission (of profiled ones: as
// their profiles arrived, before the others). Code invalid_argument without a start.
Result<std::unique_ptr<Pending<std::vector<PassTime>>>> take_pass_times(Device& device);

}  // namespace ptero::gpu
