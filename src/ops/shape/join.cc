// SPDX-License-Identifier: BSD-3-Clause
// Tensors that other tensors are parts of.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/common/kernel_types.h"
#include "ops/shape/concat_rows.wgsl.h"
#include "ops/shape/shape_ops.h"
#include "ops/shape/strided.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// x as [start, start + its length) of y along `axis`.
Status record_part(OpCall& op, const TensorRef& x, const TensorRef& y, size_t axis,
                   uint32_t start) {
  PTERO_ASSIGN_OR_RETURN(const uint64_t per_word, elements_per_word(y));
  const uint64_t inner = y.shape.numel(axis + 1, y.shape.rank());
  const uint64_t row = x.shape[axis] * inner;
  const uint64_t y_row = y.shape[axis] * inner;
  const uint64_t y_base = start * inner;
  if (x.numel() == 0) {
    return ok_status();
  }
  if (row % per_word == 0 && y_row % per_word == 0 && y_base % per_word == 0) {
    PTERO_REJECT_IF(y.numel() / per_word > UINT32_MAX, unsupported,
                    "Number of words ({}) of tensor {} exceeds what this operator addresses ({}).",
                    y.numel() / per_word, y.id, UINT32_MAX);
    const uint64_t n = x.numel() / per_word;
    PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, n));
    return op.dispatch({{&wgsl::kConcatRows}, {x, y}, grid},
                       wgsl::ConcatRowsParams{.n = static_cast<uint32_t>(n),
                                              .row = static_cast<uint32_t>(row / per_word),
                                              .y_row = static_cast<uint32_t>(y_row / per_word),
                                              .y_base = static_cast<uint32_t>(y_base / per_word)});
  }
  // Words that x shares with its neighbours: each dispatch writes its own bytes of them.
  StridedWalk walk{.axes = axes_of(x.shape), .keep = true};
  walk.axes[axis] = StridedAxis(y.shape[axis], static_cast<int64_t>(inner), start, x.shape[axis]);
  return record_walk(op, x, y, std::move(walk));
}

// IEEE half of a number, rounded to nearest, ties to even.
uint32_t half_bits(double value) {
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (std::isnan(value)) {
    return sign | 0x7e00;
  }
  if (size >= 65520) {
    return sign | 0x7c00;
  }
  // In units of the last place: 2^-24 below the normal numbers, else 2^-10 of the power of two.
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // A carry out of the fraction steps into the exponent, as it should.
  return sign | (static_cast<uint32_t>(exponent + 14) * 1024 + units);
}

Result<uint32_t> fill_bits(const TensorRef& tensor, double value) {
  const auto integer = [&](double low, double high) -> Result<uint32_t> {
    PTERO_REJECT_IF(!(value >= low && value <= high) || std::trunc(value) != value, invalid_program,
                    "Value ({}) does not fit the type {} of tensor {}.", value,
                    pte::name_of(tensor.dtype), tensor.id);
    return static_cast<uint32_t>(static_cast<int64_t>(value));
  };
  switch (tensor.dtype) {
    case pte::GraphDtype::float32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case pte::GraphDtype::float16:
      return half_bits(value);
    case pte::GraphDtype::boolean:
      return value != 0 ? 1u : 0u;
    case pte::GraphDtype::uint8:
      return integer(0, 255);
    case pte::GraphDtype::int8: {
      PTERO_ASSIGN_OR_RETURN(const uint32_t bits, integer(-128, 127));
      return bits & 0xff;
    }
    default:
      return integer(std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  }
}

}  // namespace

Status plan_cat(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(std::vector<TensorRef> parts, op.tensor_list(0));
  // PyTorch lets these pass, whatever the other shapes are.
  std::erase_if(parts, [](const TensorRef& x) { return x.shape == Shape{0}; });
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, y.shape.rank()));
  Shape shape = parts.empty() ? Shape{0} : parts.front().shape;
  uint64_t length = 0;
  for (const TensorRef& x : parts) {
    PTERO_RETURN_IF_ERROR(require_same_type(x, y));
    Shape same = x.shape;
    if (x.shape.rank() == shape.rank() && axis < shape.rank()) {
      length += x.shape[axis];
      same.set(axis, shape[axis]);
    }
    PTERO_REJECT_IF(same != shape || axis >= shape.rank(), invalid_argument,
                    "Shapes {} and {} cannot be joined along axis {}.",
                    to_string(parts.front().shape), to_string(x.shape), axis);
  }
  PTERO_REJECT_IF(length > UINT32_MAX, unsupported,
                  "Length ({}) of the result exceeds the limit ({}).", length, UINT32_MAX);
  shape.set(axis, static_cast<uint32_t>(length));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  uint32_t start = 0;
  for (const TensorRef& x : parts) {
    PTERO_RETURN_IF_ERROR(record_part(op, x, y, axis, start));
    start += x.shape[axis];
  }
  return ok_status();
}

Status plan_pad(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> pad, op.integer_list(1));
  PTERO_ASSIGN_OR_RETURN(const double value, op.number_or(2, 0));
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(pad.size() % 2 != 0 || pad.size() / 2 > rank, invalid_program,
                  "Number of pads ({}) is odd or exceeds twice the tensor's rank ({}).", pad.size(),
                  rank);
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_ASSIGN_OR_RETURN(const uint32_t fill, fill_bits(y, value));
  Shape shape = x.shape;
  StridedWalk walk{.axes = axes_of(x.shape), .fill = fill};
  for (size_t i = 0; i < pad.size() / 2; ++i) {  // the last dimension comes first
    const size_t axis = rank - 1 - i;
    const int64_t before = pad[2 * i];
    const int64_t after = pad[2 * i + 1];
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const auto sane = [](int64_t amount) { return amount >= -kMost && amount <= kMost; };
    const int64_t length = sane(before) && sane(after) ? x.shape[axis] + before + after : -1;
    // Negative pads cut off.
    PTERO_REJECT_IF(length < 0 || length > UINT32_MAX, invalid_program,
                    "Pads ({} and {}) make no length of dimension {} ({}).", before, after, axis,
                    x.shape[axis]);
    shape.set(axis, static_cast<uint32_t>(length));
    walk.axes[axis] =
        StridedAxis(static_cast<uint32_t>(length), walk.axes[axis].stride, before, x.shape[axis]);
  }
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  return record_walk(op, x, y, std::move(walk));
}

}  // namespace ptero::ops
