// SPDX-License-Identifier: BSD-3-Clause
// Matrices side by side: row r is row r of the first, then row r of the second, and so on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_source.h"

namespace ptero::passes {

struct RowPiece {
  ByteRange bytes;
  uint64_t stride = 0;  // bytes from one row to the next
  uint64_t taken = 0;   // bytes of a row, at most `stride`
};

// The pieces have at least `rows` rows each (`taken` bytes of the last).
ByteSourcePtr join_rows(uint64_t rows, std::vector<RowPiece> pieces);

}  // namespace ptero::passes
