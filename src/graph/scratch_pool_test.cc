// SPDX-License-Identifier: BSD-3-Clause
#include "graph/scratch_pool.h"

#include <optional>
#include <random>
#include <set>

#include <doctest/doctest.h>

namespace ptero::graph {
namespace {

// A pool with free slots of these sizes.
void fill(ScratchPool& pool, std::initializer_list<uint64_t> sizes) {
  std::vector<ScratchPool::Lease> leases;
  for (const uint64_t size : sizes) {
    leases.push_back(pool.acquire(size));
  }
  REQUIRE(pool.slots().size() == sizes.size());
}

TEST_CASE("scratch pool: the best of several free slots") {
  ScratchPool pool;
  fill(pool, {160, 120, 200, 100, 140});
  const auto first = pool.acquire(104);
  CHECK(pool.slots()[first.slot()] == 120);
  const auto second = pool.acquire(104);
  CHECK(pool.slots()[second.slot()] == 140);
  const auto third = pool.acquire(104);
  CHECK(pool.slots()[third.slot()] == 160);
  const auto fourth = pool.acquire(104);
  CHECK(pool.slots()[fourth.slot()] == 200);
  const auto fifth = pool.acquire(104);  // 100 is too small
  CHECK(fifth.slot() == 5);
  CHECK(pool.slots()[5] == 104);
  CHECK(pool.leased() == 5);
}

TEST_CASE("scratch pool: slots of n, 2n and 2n + 4 bytes, and of n - 4") {
  for (const auto& [size, taken] :
       {std::pair<uint64_t, bool>{64, true}, {128, true}, {132, false}, {60, false}}) {
    CAPTURE(size);
    ScratchPool pool;
    fill(pool, {size});
    const auto lease = pool.acquire(64);
    CHECK((lease.slot() == 0) == taken);
    CHECK(pool.slots().size() == (taken ? 1 : 2));
  }
  ScratchPool pool;  // twice as many bytes are more than there are numbers
  fill(pool, {UINT64_MAX - 3});
  CHECK(pool.acquire(UINT64_MAX - 7).slot() == 0);
}

TEST_CASE("scratch pool: a leased slot is given to nobody else") {
  std::mt19937 random(7);
  ScratchPool pool;
  std::vector<ScratchPool::Lease> held;
  for (int i = 0; i < 2000; ++i) {
    if (held.empty() || random() % 3 != 0) {
      held.push_back(pool.acquire(4 * (1 + random() % 64)));
    } else {
      std::swap(held[random() % held.size()], held.back());
      held.pop_back();
    }
    std::set<uint32_t> slots;
    for (const auto& lease : held) {
      CHECK(slots.insert(lease.slot()).second);
    }
    CHECK(pool.leased() == held.size());
  }
  held.clear();
  CHECK(pool.leased() == 0);
}

TEST_CASE("scratch pool: a lease that moves is released once, at its end") {
  ScratchPool pool;
  std::optional<ScratchPool::Lease> outer;
  {
    auto inner = pool.acquire(8);
    outer = std::move(inner);
    CHECK(pool.leased() == 1);
  }
  CHECK(pool.leased() == 1);
  auto other = pool.acquire(8);
  CHECK(other.slot() == 1);
  other = std::move(*outer);
  outer.reset();
  CHECK(other.slot() == 0);
  CHECK(pool.leased() == 1);
  CHECK(pool.acquire(8).slot() == 1);
}

TEST_CASE("scratch pool: without reuse everybody gets a slot") {
  ScratchPool pool(false);
  fill(pool, {8});
  CHECK(pool.acquire(8).slot() == 1);
  CHECK(pool.acquire(8).slot() == 2);
}

}  // namespace
}  // namespace ptero::graph
