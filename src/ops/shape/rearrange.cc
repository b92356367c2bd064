// SPDX-License-Identifier: BSD-3-Clause
// The elements of one tensor in another order, or several times.
#include <utility>

#include "ops/shape/shape_ops.h"
#include "ops/shape/strided.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// Axes named by an argument, each once.
Result<std::vector<size_t>> distinct_axes(const OpCall& op, size_t arg, size_t rank) {
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, op.integer_list(arg));
  std::vector<bool> seen(rank);
  std::vector<size_t> axes;
  for (const int64_t dim : dims) {
    PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, rank));
    PTERO_REJECT_IF(seen[axis], invalid_program, "Axis ({}) is named twice.", axis);
    seen[axis] = true;
    axes.push_back(axis);
  }
  return axes;
}

// A shape from sizes that a file or a caller computed.
Result<Shape> checked_shape(const std::vector<int64_t>& sizes) {
  std::vector<uint32_t> dims;
  for (const int64_t size : sizes) {
    PTERO_REJECT_IF(size < 0 || size > UINT32_MAX, invalid_argument,
                    "Size ({}) of a dimension does not lie between 0 and {}.", size, UINT32_MAX);
    dims.push_back(static_cast<uint32_t>(size));
  }
  return Shape::from(dims);
}

}  // namespace

Status plan_permute(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<size_t> order, distinct_axes(op, 1, x.shape.rank()));
  PTERO_REJECT_IF(order.size() != x.shape.rank(), invalid_program,
                  "Number of axes ({}) of a permutation differs from the tensor's rank ({}).",
                  order.size(), x.shape.rank());
  const std::vector<StridedAxis> from = axes_of(x.shape);
  Shape shape;
  StridedWalk walk;
  for (const size_t axis : order) {
    shape.append(x.shape[axis]);
    walk.axes.push_back(from[axis]);
  }
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  return record_walk(op, x, y, std::move(walk));
}

Status plan_flip(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<size_t> flipped, distinct_axes(op, 1, x.shape.rank()));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
  StridedWalk walk{.axes = axes_of(x.shape)};
  for (const size_t axis : flipped) {
    StridedAxis& along = walk.axes[axis];
    walk.base += along.stride * (int64_t{along.dim} - 1);
    along.stride = -along.stride;
  }
  return record_walk(op, x, y, std::move(walk));
}

Status plan_expand(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, op.integer_list(1));
  PTERO_REJECT_IF(sizes.size() < x.shape.rank(), invalid_program,
                  "Number of sizes ({}) of an expansion is less than the tensor's rank ({}).",
                  sizes.size(), x.shape.rank());
  const size_t added = sizes.size() - x.shape.rank();
  for (size_t i = added; i < sizes.size(); ++i) {
    const uint32_t dim = x.shape[i - added];
    sizes[i] = sizes[i] == -1 ? dim : sizes[i];
    PTERO_REJECT_IF(dim != 1 && sizes[i] != dim, invalid_argument,
                    "Dimension {} of a tensor {} does not expand to {}.", i - added,
                    to_string(x.shape), sizes[i]);
  }
  PTERO_ASSIGN_OR_RETURN(const Shape shape, checked_shape(sizes));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  const auto strides = graph::broadcast_strides(x.shape, shape);
  StridedWalk walk;
  for (size_t i = 0; i < shape.rank(); ++i) {
    walk.axes.emplace_back(shape[i], strides[i]);
  }
  return record_walk(op, x, y, std::move(walk));
}

Status plan_repeat(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, op.integer_list(1));
  PTERO_ASSIGN_OR_RETURN(const Shape times, checked_shape(repeats));
  PTERO_REJECT_IF(times.rank() < x.shape.rank(), invalid_program,
                  "Number of repeats ({}) is less than the tensor's rank ({}).", times.rank(),
                  x.shape.rank());
  const size_t added = times.rank() - x.shape.rank();
  const std::vector<StridedAxis> from = axes_of(x.shape);
  std::vector<int64_t> sizes;
  StridedWalk walk;
  for (size_t i = 0; i < times.rank(); ++i) {
    walk.axes.emplace_back(times[i], 0);
    sizes.push_back(times[i]);
    if (i >= added) {
      walk.axes.push_back(from[i - added]);
      sizes.back() *= x.shape[i - added];
    }
  }
  PTERO_ASSIGN_OR_RETURN(const Shape shape, checked_shape(sizes));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  return record_walk(op, x, y, std::move(walk));
}

Status plan_pixel_shuffle(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t factor, op.integer(1));
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(rank < 3, invalid_program,
                  "Rank ({}) of a tensor for pixel_shuffle is less than 3.", rank);
  const size_t channel = rank - 3;
  const int64_t channels = x.shape[channel];
  // The factor is compared before it is squared, so that the square fits.
  PTERO_REJECT_IF(
      factor < 1 || factor > std::max<int64_t>(channels, 1) || channels % (factor * factor) != 0,
      invalid_program,
      "Number of channels ({}) is not a multiple of the square of the factor ({}).", channels,
      factor);
  const int64_t height = x.shape[rank - 2];
  const int64_t width = x.shape[rank - 1];
  std::vector<int64_t> sizes(x.shape.dims().begin(), x.shape.dims().end());
  sizes[channel] = channels / (factor * factor);
  sizes[rank - 2] *= factor;
  sizes[rank - 1] *= factor;
  PTERO_ASSIGN_OR_RETURN(const Shape shape, checked_shape(sizes));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));

  // Channels fall apart into (channel, row in a block, column in a block).
  StridedWalk walk{.axes = axes_of(x.shape)};
  walk.axes.resize(channel, StridedAxis(1, 0));
  const auto add = [&](int64_t dim, int64_t stride) {
    walk.axes.emplace_back(static_cast<uint32_t>(dim), stride);
  };
  const int64_t plane = height * width;
  add(sizes[channel], factor * factor * plane);
  add(height, width);
  add(factor, factor * plane);
  add(width, 1);
  add(factor, plane);
  return record_walk(op, x, y, std::move(walk));
}

}  // namespace ptero::ops
