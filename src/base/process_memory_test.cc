// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_memory.h"

#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

namespace ptero {
namespace {

TEST_CASE("peak memory: grows with what is touched, and never shrinks") {
  const auto before = peak_host_bytes();
  if (!before) {
    MESSAGE("This system does not tell.");
    return;
  }
  CHECK(*before > 1 << 20);
  constexpr size_t kBytes = size_t{512} << 20;
  size_t sum = 0;
  {
    const std::vector<std::byte> block(kBytes, std::byte{1});
    sum += static_cast<size_t>(block[kBytes / 2]);
  }
  CHECK(sum == 1);
  const auto after = peak_host_bytes();
  REQUIRE(after);
  CHECK(*after >= kBytes);
  CHECK(*after >= *before);
}

}  // namespace
}  // namespace ptero
