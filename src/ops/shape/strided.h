// SPDX-License-Identifier: BSD-3-Clause
// The one way in which the operators of this folder move elements.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// One axis of a result: how far apart in the source two neighbours along it lie, in elements.
// Only coordinates [low, low + size) have a source; the first of them is the one at offset 0.
struct StridedAxis {
  StridedAxis(uint32_t dim_, int64_t stride_) : dim(dim_), stride(stride_), size(dim_) {}
  StridedAxis(uint32_t dim_, int64_t stride_, int64_t low_, uint32_t size_)
      : dim(dim_), stride(stride_), low(low_), size(size_) {}

  bool windowed() const { return low != 0 || size != dim; }

  uint32_t dim;
  int64_t stride;
  int64_t low = 0;  // may be negative or lie outside the axis
  uint32_t size;
};

// A result as a walk through its source, axes outermost first; their dims multiply to the elements
// of the result. At most 16 remain once neighbours that run on in the source are one.
struct StridedWalk {
  std::vector<StridedAxis> axes;
  int64_t base = 0;   // element of the source that the first element comes from
  uint32_t fill = 0;  // bits of the elements that have no source
  bool keep = false;  // these stay as they are instead; only for packed types
};

// Elements in a word: 1, 2 (float16) or 4 (bool, int8, uint8). Code unsupported for other types.
Result<uint32_t> elements_per_word(const graph::TensorRef& tensor);

// x read along its own axes: for each dimension its size and its stride.
std::vector<StridedAxis> axes_of(const graph::Shape& shape);

// Records y = walk through x; nothing for an empty y. The types must be the same. Code internal
// when the walk leaves x.
Status record_walk(graph::OpCall& op, const graph::TensorRef& x, const graph::TensorRef& y,
                   StridedWalk walk);

}  // namespace ptero::ops
