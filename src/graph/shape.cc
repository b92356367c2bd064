// SPDX-License-Identifier: BSD-3-Clause
#include "graph/shape.h"

#include <algorithm>
#include <cassert>

#include <fmt/ranges.h>

namespace ptero::graph {

Shape::Shape(std::initializer_list<uint32_t> dims) {
  assert(dims.size() <= kMaxRank);
  for (const uint32_t dim : dims) {
    append(dim);
  }
}

Result<Shape> Shape::from(std::span<const uint32_t> dims) {
  PTERO_REJECT_IF(dims.size() > kMaxRank, unsupported,
                  "Rank ({}) of a tensor exceeds the limit of the kernels ({}).", dims.size(),
                  kMaxRank);
  Shape shape;
  for (const uint32_t dim : dims) {
    shape.append(dim);
  }
  return shape;
}

uint64_t Shape::numel() const {
  return numel(0, rank_);
}

uint64_t Shape::numel(size_t first, size_t last) const {
  uint64_t count = 1;
  for (size_t i = first; i < last; ++i) {
    count *= dims_[i];
  }
  return count;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ", "));
}

Result<size_t> normalize_axis(int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  PTERO_REJECT_IF(axis < -signed_rank || axis >= signed_rank, invalid_program,
                  "Axis ({}) lies outside a tensor of rank {}.", axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  Shape result;
  for (size_t i = 0; i < rank; ++i) {
    // Missing leading dimensions count as 1.
    const uint32_t x = i + a.rank() >= rank ? a[i + a.rank() - rank] : 1;
    const uint32_t y = i + b.rank() >= rank ? b[i + b.rank() - rank] : 1;
    PTERO_REJECT_IF(x != y && x != 1 && y != 1, invalid_program,
                    "Shapes {} and {} do not broadcast.", to_string(a), to_string(b));
    result.append(x == 1 ? y : x);
  }
  return result;
}

std::array<uint32_t, kMaxRank> strides(const Shape& shape) {
  std::array<uint32_t, kMaxRank> result = {};
  uint32_t stride = 1;
  for (size_t i = shape.rank(); i-- > 0;) {
    result[i] = stride;
    stride *= shape[i];
  }
  return result;
}

std::array<uint32_t, kMaxRank> broadcast_strides(const Shape& shape, const Shape& target) {
  const std::array<uint32_t, kMaxRank> own = strides(shape);
  std::array<uint32_t, kMaxRank> result = {};
  const size_t offset = target.rank() - shape.rank();
  for (size_t i = 0; i < shape.rank(); ++i) {
    result[i + offset] = shape[i] == 1 ? 0 : own[i];
  }
  return result;
}

}  // namespace ptero::graph
