// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/device.h"

namespace ptero::gpu {

// Bytes of the memory that the device's buffers live in: the GPU's own, or the machine's where they
// share it. Empty where the implementation does not tell. Others use it too, so a device may give
// less.
std::optional<uint64_t> device_memory_bytes(const Device& device);

}  // namespace ptero::gpu
