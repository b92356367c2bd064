// SPDX-License-Identifier: BSD-3-Clause
#include "graph/scratch_pool.h"

#include <algorithm>
#include <optional>

namespace ptero::graph {

ScratchPool::Lease ScratchPool::acquire(uint64_t bytes) {
  std::optional<uint32_t> best;
  for (uint32_t i = 0; reuse_ && i < slots_.size(); ++i) {
    const bool fits = !leased_[i] && slots_[i] >= bytes && slots_[i] - bytes <= bytes;
    if (fits && (!best || slots_[i] < slots_[*best])) {
      best = i;
    }
  }
  if (!best) {
    best = static_cast<uint32_t>(slots_.size());
    slots_.push_back(bytes);
    leased_.push_back(false);
  }
  leased_[*best] = true;
  return Lease(*this, *best);
}

size_t ScratchPool::leased() const {
  return static_cast<size_t>(std::count(leased_.begin(), leased_.end(), true));
}

}  // namespace ptero::graph
