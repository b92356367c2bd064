// SPDX-License-Identifier: BSD-3-Clause
// How kernels over rows are spread over threads, and tensors that are too large for one binding
// over several.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// The host's half of "ops/common/rows_part.wgsl".
struct RowSplit {
  uint32_t wg_size = 64;
  uint32_t lanes = 64;  // threads of a row
  gpu::Grid grid;

  std::vector<gpu::OverrideValue> overrides() const;
};

// For `rows` rows of `length` elements that lie `stride` elements apart.
Result<RowSplit> split_rows(const graph::OpCall& op, uint64_t rows, uint64_t length,
                            uint64_t stride = 1);

// Rows [first, first + count) of a tensor.
struct RowBlock {
  uint64_t first = 0;
  uint64_t count = 0;

  bool operator==(const RowBlock&) const = default;
};

// The fewest blocks of whole rows such that each fits in a storage binding and starts at an offset
// that a binding may have, for every tensor whose bytes in a row are given (entries of 0 are
// ignored). One block when everything fits; none for no rows. Code unsupported, with the numbers
// and `what` to name the rows, when there is no such split.
Result<std::vector<RowBlock>> split_into_bindings(std::string_view what, uint64_t rows,
                                                  std::span<const uint64_t> row_bytes,
                                                  const gpu::Limits& limits);

// What binds these rows of the tensor. Sizes are whole words, as storages are.
graph::BufferRef bind_rows(const graph::TensorRef& tensor, RowBlock block, uint64_t row_bytes);

}  // namespace ptero::ops
