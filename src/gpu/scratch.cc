// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/scratch.h"

namespace ptero::gpu {

Result<const Buffer*> ScratchOwner::create_scratch_buffer(std::string label, uint64_t bytes) {
  PTERO_REJECT_IF(bytes == 0, invalid_argument,
                  "Size (0 bytes) of scratch buffer ({}) is not above 0.", label);
  PTERO_ASSIGN_OR_RETURN(Buffer buffer,
                         device_.create_buffer(std::move(label), bytes, MemoryKind::scratch));
  buffers_.push_back(std::move(buffer));
  bytes_ += bytes;
  return &buffers_.back();
}

}  // namespace ptero::gpu
