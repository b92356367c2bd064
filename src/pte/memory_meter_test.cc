// SPDX-License-Identifier: BSD-3-Clause
#include "pte/memory_meter.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <doctest/doctest.h>

namespace {

std::atomic<size_t> used_bytes = 0;
std::atomic<size_t> peak_bytes = 0;

// The size is kept in front of the block, in a header that keeps malloc's alignment.
constexpr size_t kHeader = alignof(std::max_align_t);

void* counted_new(size_t size) {
  void* block = std::malloc(size + kHeader);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  *static_cast<size_t*>(block) = size;
  const size_t now = used_bytes.fetch_add(size) + size;
  size_t seen = peak_bytes.load();
  while (now > seen && !peak_bytes.compare_exchange_weak(seen, now)) {
  }
  return static_cast<char*>(block) + kHeader;
}

void counted_delete(void* pointer) {
  if (pointer != nullptr) {
    void* block = static_cast<char*>(pointer) - kHeader;
    used_bytes.fetch_sub(*static_cast<size_t*>(block));
    std::free(block);
  }
}

}  // namespace

void* operator new(size_t size) {
  return counted_new(size);
}
void* operator new[](size_t size) {
  return counted_new(size);
}
void operator delete(void* pointer) noexcept {
  counted_delete(pointer);
}
void operator delete[](void* pointer) noexcept {
  counted_delete(pointer);
}
void operator delete(void* pointer, size_t) noexcept {
  counted_delete(pointer);
}
void operator delete[](void* pointer, size_t) noexcept {
  counted_delete(pointer);
}

namespace ptero::test {

MemoryMeter::MemoryMeter() : start_(used_bytes.load()) {
  peak_bytes.store(start_);
}

size_t MemoryMeter::peak() const {
  return peak_bytes.load() - start_;
}

TEST_CASE("memory meter: sees the peak, not the rest") {
  MemoryMeter meter;
  CHECK(meter.peak() == 0);
  {
    const std::vector<char> large(1'000'000);
  }
  const std::vector<char> small(1000);
  CHECK(meter.peak() >= 1'000'000);
  CHECK(meter.peak() < 1'100'000);
}

}  // namespace ptero::test
