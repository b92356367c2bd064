// SPDX-License-Identifier: BSD-3-Clause
// Slices, single rows and splits: a walk through part of a tensor.
#include <algorithm>
#include <limits>

#include "ops/shape/shape_ops.h"
#include "ops/shape/strided.h"

namespace ptero::ops {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

Status plan_slice(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
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
  PTERO_ASSIGN_OR_RETURN(const int64_t index, op.integer(2));
  const int64_t length = x.shape[axis];
  PTERO_REJECT_IF(index < -length || index >= length, invalid_argument,
                  "Index ({}) lies outside dimension {} of a tensor {}.", index, axis,
                  to_string(x.shape));
  Shape shape;
  for (size_t i = 0; i < x.shape.rank(); ++i) {
    if (i != axis) {
      shape.append(x.shape[i]);
    }
  }
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
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
