// SPDX-License-Identifier: BSD-3-Clause
// The way back to the host: staging buffers and the operations that wait for them.
#pragma once

#include <memory>
#include <vector>

#include "gpu/internal/device_state.h"

namespace ptero::gpu::internal {

// One range inside a staging buffer. Offsets are multiples of 8, as mapping asks.
struct ReadPart {
  uint64_t offset;
  uint64_t size;
};

// A free staging buffer of the pool, or a new one.
Result<StagingPool::Staging> take_staging(DeviceState& state, uint64_t bytes);

// Maps the first `used` bytes; the result holds one entry per part. Returns the buffer to the pool.
std::unique_ptr<Pending<ReadData>> map_staging(std::shared_ptr<DeviceState> state,
                                               StagingPool::Staging staging,
                                               std::vector<ReadPart> parts, uint64_t used);

// Done when the queue has worked off everything submitted so far.
std::unique_ptr<Pending<void>> wait_for_queue(std::shared_ptr<DeviceState> state);

}  // namespace ptero::gpu::internal
