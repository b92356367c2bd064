// SPDX-License-Identifier: BSD-3-Clause
// Inside the family: a 4-bit linear layer in parts that the bindings and grids of a device take.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "graph/op_call.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/quant_linear/q4_linear.h"

namespace ptero::ops {

// A count that fits, since every buffer's size was checked, as the kernels take it.
inline uint32_t u32(uint64_t value) {
  return static_cast<uint32_t>(value);
}

inline uint64_t item_size(const graph::TensorRef& tensor) {
  return tensor.dtype == pte::GraphDtype::float16 ? 2 : 4;
}

// A planned linear layer: what holds for every part of it.
struct Q4Layer {
  Q4Linear what;
  Q4Shape shape;
  uint64_t scale_row = 0;  // elements
  ElementType type;
  ElementType scale_type;
  std::optional<graph::BufferRef> y_values;  // elements of y's type, to write in place of y

  graph::BufferRef y() const { return y_values.value_or(graph::BufferRef(what.y)); }
  uint64_t columns() const { return what.gated ? shape.n / 2 : shape.n; }  // of y
  uint64_t x_item() const { return what.x_values ? 4 : item_size(what.x); }
};

// Rows of x, rows of the weight, and groups of these.
struct Q4Part {
  RowBlock m;
  RowBlock n;
  RowBlock groups;
};

// How many elements of `item` bytes a binding holds wherever they start.
uint64_t q4_window_size(uint64_t item, const gpu::Limits& limits);

Q4Route route_of(const graph::OpCall& op, const Q4Layer& layer, const Q4Part& part);
// Whether one dispatch makes the part.
bool fits_grid(const graph::OpCall& op, const Q4Layer& layer, const Q4Part& part);

// Records the dispatches of a part that bindings take.
Status dispatch_q4_part(graph::OpCall& op, const Q4Layer& layer, const Q4Part& part);

}  // namespace ptero::ops
