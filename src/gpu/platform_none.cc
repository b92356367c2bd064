// SPDX-License-Identifier: BSD-3-Clause
// A build without Dawn (PTERO_BUILD_GPU=OFF): nothing makes an instance, so none has callbacks due.
#include "gpu/internal/pump.h"

namespace ptero::gpu::internal {

void pump_callbacks(InstanceState&) {}

}  // namespace ptero::gpu::internal
