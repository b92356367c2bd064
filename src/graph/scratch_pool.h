// SPDX-License-Identifier: BSD-3-Clause
// Scratch that lives within one operator call, placed while a plan is made: a slot that one call is
// through with serves a later one. WebGPU runs dispatches in their order, each seeing what those
// before it wrote, so no two calls are ever in a slot together. Plain data, no GPU objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ptero::graph {

class ScratchPool {
 public:
  // Without `reuse` every request gets a slot of its own.
  explicit ScratchPool(bool reuse = true) : reuse_(reuse) {}
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;

  // A slot for as long as this lives, which must not be longer than the pool.
  class Lease {
   public:
    Lease(ScratchPool& pool, uint32_t slot) : pool_(&pool), slot_(slot) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Lease() {
      if (pool_ != nullptr) {
        pool_->release(slot_);
      }
    }
    uint32_t slot() const { return slot_; }

   private:
    ScratchPool* pool_;
    uint32_t slot_;
  };

  // The smallest free slot of `bytes` to twice as many, or a new one of `bytes`, which is a
  // multiple of 4 above 0. A slot that is leased is never given out.
  Lease acquire(uint64_t bytes);

  // Bytes of each slot.
  std::span<const uint64_t> slots() const { return slots_; }
  size_t leased() const;

 private:
  void release(uint32_t slot) { leased_[slot] = false; }

  bool reuse_;
  std::vector<uint64_t> slots_;
  std::vector<bool> leased_;
};

}  // namespace ptero::graph
