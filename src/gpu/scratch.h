// SPDX-License-Identifier: BSD-3-Clause
// Scratch buffers that live as long as the graph (or whatever else) that owns them.
#pragma once

#include <deque>
#include <string>

#include "base/result.h"
#include "gpu/device.h"

namespace ptero::gpu {

// Owns scratch buffers; all of them go when it goes. Counted in DeviceStats::scratch_live at the
// place where buffers are made, so that a leak shows.
class ScratchOwner {
 public:
  explicit ScratchOwner(Device device) : device_(std::move(device)) {}

  // Contents start as zeros and survive between steps. 0 bytes is an invalid_argument error. The
  // pointer stays valid as long as this owner.
  Result<const Buffer*> create_scratch_buffer(std::string label, uint64_t bytes);

  size_t count() const { return buffers_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  Device device_;
  std::deque<Buffer> buffers_;  // a deque keeps addresses
  uint64_t bytes_ = 0;
};

}  // namespace ptero::gpu
