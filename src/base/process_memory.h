// SPDX-License-Identifier: BSD-3-Clause
// What this process takes of the machine's memory. Device memory is in gpu::DeviceStats.
#pragma once

#include <cstdint>
#include <optional>

namespace ptero {

// The most bytes that were resident at once since the process began, mapped files included; empty
// where the system does not tell.
std::optional<uint64_t> peak_host_bytes();

}  // namespace ptero
