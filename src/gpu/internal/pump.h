// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace ptero::gpu::internal {

struct InstanceState;

// Runs the callbacks that are due (platform_*.cc).
void pump_callbacks(InstanceState& instance);

}  // namespace ptero::gpu::internal
