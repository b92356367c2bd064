// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// Of cosines and sines alike: rows of `width` elements.
struct RotaryTable {
  uint32_t rows = 0;
  uint32_t width = 0;
};
Result<RotaryTable> rotary_table(const graph::TensorRef& cosines, const graph::TensorRef& sines);

Status plan_rotary_kv_cache(graph::OpCall& op);

}  // namespace ptero::ops
