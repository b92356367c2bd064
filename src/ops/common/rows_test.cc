// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/rows.h"

#include <array>

#include <doctest/doctest.h>

namespace ptero::ops {
namespace {

gpu::Limits limits_of(uint64_t binding, uint32_t alignment) {
  gpu::Limits limits;
  limits.max_storage_binding_size = binding;
  limits.min_storage_offset_alignment = alignment;
  return limits;
}

TEST_CASE("split_into_bindings: one block when everything fits, none for no rows") {
  const auto limits = limits_of(1000, 256);
  CHECK(*split_into_bindings("rows", 10, std::array<uint64_t, 2>{100, 4}, limits) ==
        std::vector<RowBlock>{{0, 10}});
  CHECK(split_into_bindings("rows", 0, std::array<uint64_t, 1>{100}, limits)->empty());
  CHECK(*split_into_bindings("rows", 9, std::array<uint64_t, 1>{0}, limits) ==
        std::vector<RowBlock>{{0, 9}});
}

TEST_CASE("split_into_bindings: blocks cover the rows, fit and are aligned for every tensor") {
  for (const uint32_t alignment : {4u, 16u, 64u, 256u}) {
    for (const uint64_t bytes : {4u, 12u, 148u, 256u, 268u, 1024u}) {
      for (const uint64_t other : {0u, 2u, 20u, 512u}) {
        const auto limits = limits_of(65536, alignment);
        const std::array<uint64_t, 2> row_bytes = {bytes, other};
        const auto blocks = split_into_bindings("rows", 40001, row_bytes, limits);
        if (!blocks.ok()) {  // only when so many rows at once are needed that they cannot fit
          CHECK(std::max(bytes, other) * (alignment / 2) > 65536);
          continue;
        }
        uint64_t next = 0;
        for (const RowBlock& block : *blocks) {
          CHECK(block.first == next);
          CHECK(block.count > 0);
          next += block.count;
          for (const uint64_t row : row_bytes) {
            CHECK(block.first * row % alignment == 0);
            CHECK(block.count * row <= 65536);
          }
        }
        CHECK(next == 40001);
      }
    }
  }
}

TEST_CASE("split_into_bindings: says with numbers when it cannot be") {
  const auto blocks = split_into_bindings("rows of a table", 9, std::array<uint64_t, 1>{1028},
                                          limits_of(65536, 256));
  CHECK(blocks.ok());
  const auto wide = split_into_bindings("rows of a table", 90, std::array<uint64_t, 1>{1028},
                                        limits_of(65536, 256));
  REQUIRE_FALSE(wide.ok());
  CHECK(wide.error().code() == ErrorCode::unsupported);
  CHECK(wide.error().message() ==
        "A binding of this adapter (at most 65536 bytes, at offsets that are multiples of 256) is "
        "too small for the rows of a table (1028 bytes each, 64 at a time).");
}

}  // namespace
}  // namespace ptero::ops
