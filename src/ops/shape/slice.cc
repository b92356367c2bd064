// SPDX-License-Identifier: BSD-3-Clause
// Slices, single rows and splits: a walk through part of a tensor.
#include <algorithm>
#include <limits>

#include "ops/common/kernel_types.h"
#include "ops/shape/live_slice.wgsl.h"
#include "ops/shape/shape_ops.h"
#include "ops/shape/strided.h"

namespace ptero::ops {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

namespace {

// y = x[start .. start + count) along an axis, where the start is read as the kernel runs.
Status record_live_slice(OpCall& op, const TensorRef& x, size_t axis, size_t start_arg,
                         uint32_t count, const TensorRef& y) {
  PTERO_ASSIGN_OR_RETURN(const uint32_t packed, elements_per_word(x));
  const uint64_t row = x.shape.numel(axis + 1, x.shape.rank()) / packed;
  const int64_t last = int64_t{x.shape[axis]} - count;
  PTERO_REJECT_IF(last < 0, invalid_argument,
                  "Length ({}) of a slice exceeds dimension {} of a tensor {}.", count, axis,
                  to_string(x.shape));
  PTERO_ASSIGN_OR_RETURN(const graph::Slot start, op.slot(start_arg, 0, last));
  const uint64_t words = y.numel() / packed;
  if (words == 0) {
    return ok_status();
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, words));
  return op.dispatch({{&wgsl::kLiveSlice}, {x, op.slots(), y}, grid},
                     wgsl::LiveSliceParams{.words = static_cast<uint32_t>(words),
                                           .chunk = static_cast<uint32_t>(count * row),
                                           .row = static_cast<uint32_t>(row),
                                           .outer_step = static_cast<uint32_t>(x.shape[axis] * row),
                                           .start = start.index,
                                           .last = static_cast<uint32_t>(last)});
}

// Whether such a slice moves whole words.
bool has_whole_rows(const TensorRef& x, size_t axis) {
  const Result<uint32_t> packed = elements_per_word(x);
  return packed.ok() && x.shape.numel(axis + 1, x.shape.rank()) % *packed == 0;
}

}  // namespace

Status plan_slice(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
  // A start that moves while the length stays is no matter of shape.
  if (const std::optional<int64_t> count = op.distance(2, 3);
      count && *count >= 0 && op.varies(2) && (op.is_null(4) || *op.integer(4) == 1) &&
      has_whole_rows(x, axis)) {
    Shape shape = x.shape;
    shape.set(axis, static_cast<uint32_t>(std::min<int64_t>(*count, UINT32_MAX)));
    PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
    PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
    return record_live_slice(op, x, axis, 2, shape[axis], y);
  }
  PTERO_ASSIGN_OR_RETURN(int64_t start, op.integer_or(2, 0));
  PTERO_ASSIGN_OR_RETURN(int64_t end, op.integer_or(3, std::numeric_limits<int64_t>::max()));
  PTERO_ASSIGN_OR_RETURN(int64_t step, op.integer_or(4, 1));
  PTERO_REJECT_IF(step < 1, invalid_program, "Step ({}) of a slice is less than 1.", step);
  // As in Python: from the end when negative, and never outside.
  const int64_t length = x.shape[axis];
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length);
  };
  start = place(start);
  end = std::max(place(end), start);
  step = std::min(step, std::max<int64_t>(length, 1));  // longer steps reach nothing more

  Shape shape = x.shape;
  shape.set(axis, static_cast<uint32_t>((end - start + step - 1) / step));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  StridedWalk walk{.axes = axes_of(x.shape)};
  const int64_t stride = walk.axes[axis].stride;
  walk.base = start * stride;
  walk.axes[axis] = StridedAxis(shape[axis], stride * step);
  return record_walk(op, x, y, std::move(walk));
}

Status plan_select(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
  Shape shape;
  for (size_t i = 0; i < x.shape.rank(); ++i) {
    if (i != axis) {
      shape.append(x.shape[i]);
    }
  }
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  if (op.varies(2) && has_whole_rows(x, axis)) {
    PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
    return record_live_slice(op, x, axis, 2, 1, y);
  }
  PTERO_ASSIGN_OR_RETURN(const int64_t index, op.integer(2));
  const int64_t length = x.shape[axis];
  PTERO_REJECT_IF(index < -length || index >= length, invalid_argument,
                  "Index ({}) lies outside dimension {} of a tensor {}.", index, axis,
                  to_string(x.shape));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  StridedWalk walk{.axes = axes_of(x.shape)};
  walk.base = (index < 0 ? index + length : index) * walk.axes[axis].stride;
  walk.axes.erase(walk.axes.begin() + static_cast<ptrdiff_t>(axis));
  return record_walk(op, x, y, std::move(walk));
}

Status plan_split(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, op.integer_list(1));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(2));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
  PTERO_ASSIGN_OR_RETURN(const std::vector<TensorRef> parts, op.tensor_list(op.arg_count() - 1));
  PTERO_REJECT_IF(parts.size() != sizes.size(), invalid_program,
                  "Number of results ({}) differs from the number of sizes ({}).", parts.size(),
                  sizes.size());
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t left = int64_t{x.shape[axis]} - start;
    PTERO_REJECT_IF(sizes[i] < 0 || sizes[i] > left, invalid_argument,
                    "Size {} ({}) of a split does not lie between 0 and what is left of dimension "
                    "{} ({}).",
                    i, sizes[i], axis, left);
    Shape shape = x.shape;
    shape.set(axis, static_cast<uint32_t>(sizes[i]));
    PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output(i));
    PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
    StridedWalk walk{.axes = axes_of(x.shape)};
    walk.base = start * walk.axes[axis].stride;
    walk.axes[axis] = StridedAxis(shape[axis], walk.axes[axis].stride);
    PTERO_RETURN_IF_ERROR(record_walk(op, x, y, std::move(walk)));
    start += sizes[i];
  }
  PTERO_REJECT_IF(start != x.shape[axis], invalid_argument,
                  "Sizes of a split ({} together) leave part of dimension {} ({}).", start, axis,
                  x.shape[axis]);
  return ok_status();
}

}  // namespace ptero::ops
