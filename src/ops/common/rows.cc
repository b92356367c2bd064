// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/rows.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "ops/common/adapter_routes.h"

namespace ptero::ops {

std::vector<gpu::OverrideValue> RowSplit::overrides() const {
  return {{"wg_size", static_cast<double>(wg_size)}, {"lanes", static_cast<double>(lanes)}};
}

Result<RowSplit> split_rows(const graph::OpCall& op, uint64_t rows, uint64_t length,
                            uint64_t stride) {
  // Threads that are worth having before a row is shared among several. A software adapter pays
  // for every barrier; neighbouring rows of a strided tensor are read side by side, which sharing
  // spoils; a dense row is read side by side only when it is shared.
  constexpr uint64_t kElementsPerLane = 4;
  constexpr uint64_t kLongRow = 4096;
  // With few rows most of a GPU has nothing to do, so each may take more threads: a row of 2,048
  // alone took an H200 27 us with 64 of them.
  constexpr uint64_t kFewRows = 64;
  constexpr uint64_t kLongRowOfFew = 1024;
  constexpr uint32_t kWideGroup = 256;
  const bool alone = route_for(Work::row_sums, op.device()).route == "thread";
  const uint64_t enough = alone ? 64 : stride > 1 ? 8192 : UINT64_MAX;
  const gpu::Limits& limits = op.device().limits;
  RowSplit split;
  const bool few = rows <= kFewRows && stride <= 1 && !alone;
  if (length >= (few ? kLongRowOfFew : kLongRow) &&
      limits.max_invocations_per_workgroup >= kWideGroup &&
      limits.max_workgroup_size_x >= kWideGroup) {
    split.wg_size = kWideGroup;
  }
  split.lanes = 1;
  while (split.lanes < split.wg_size && split.lanes * kElementsPerLane < length &&
         rows * split.lanes < enough) {
    split.lanes *= 2;
  }
  const auto grid = graph::fold_grid(ceil_div<uint64_t>(rows, split.wg_size / split.lanes), limits);
  PTERO_REJECT_IF(!grid, unsupported, "Number of rows ({}) exceeds what a grid holds.", rows);
  split.grid = *grid;
  return split;
}

Result<std::vector<RowBlock>> split_into_bindings(std::string_view what, uint64_t rows,
                                                  std::span<const uint64_t> row_bytes,
                                                  const gpu::Limits& limits) {
  const uint64_t limit = limits.max_storage_binding_size;
  const uint64_t alignment = std::max<uint32_t>(limits.min_storage_offset_alignment, 4);
  uint64_t largest = 0;
  uint64_t unit = 1;  // every block but the last has a multiple of so many rows
  for (const uint64_t bytes : row_bytes) {
    largest = std::max(largest, bytes);
    // Alignments are powers of two, so the largest unit serves all.
    unit = std::max(unit, bytes == 0 ? 1 : alignment / std::gcd(bytes, alignment));
  }
  if (rows == 0) {
    return std::vector<RowBlock>();
  }
  if (largest == 0 || rows <= limit / largest) {
    return std::vector<RowBlock>{{0, rows}};
  }
  const uint64_t most = limit / largest / unit * unit;
  PTERO_REJECT_IF(most == 0, unsupported,
                  "A binding of this adapter (at most {} bytes, at offsets that are multiples of "
                  "{}) is too small for the {} ({} bytes each, {} at a time).",
                  limit, alignment, what, largest, unit);
  std::vector<RowBlock> blocks;
  for (uint64_t first = 0; first < rows; first += most) {
    blocks.push_back({first, std::min(most, rows - first)});
  }
  return blocks;
}

graph::BufferRef bind_rows(const graph::TensorRef& tensor, RowBlock block, uint64_t row_bytes) {
  return {tensor, block.first * row_bytes, ceil_div<uint64_t>(block.count * row_bytes, 4) * 4};
}

}  // namespace ptero::ops
