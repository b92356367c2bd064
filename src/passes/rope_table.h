// SPDX-License-Identifier: BSD-3-Clause
// Private to src/passes: tables of rotary position embeddings beyond their last row.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "pte/graph.h"

namespace ptero::passes {

// Row r of a table holds scale * cos(r * angle) or scale * sin(r * angle) for each column.
struct RopeAngles {
  std::vector<double> angles;  // by column
  double scale = 1;
};

// The angles of two tables of `rows` rows, float32 or float16, found by least squares over their
// rows. Code unsupported when some row says otherwise, by more than half precision rounds.
Result<RopeAngles> find_rope_angles(const ByteRange& cosines, const ByteRange& sines,
                                    pte::GraphDtype dtype, uint32_t rows, uint32_t columns);

// The bytes of `table`, and behind them as many computed rows as make `rows`.
Result<ByteRange> extend_rope_table(const ByteRange& table, const RopeAngles& angles, bool sines,
                                    pte::GraphDtype dtype, uint32_t rows);

}  // namespace ptero::passes
