// SPDX-License-Identifier: BSD-3-Clause
// Shapes of tensors as a graph runs: up to eight dimensions, row-major, outermost first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/result.h"

namespace ptero::graph {

// The most dimensions that a kernel can address. The readers accept more.
inline constexpr size_t kMaxRank = 8;

class Shape {
 public:
  Shape() = default;  // rank 0: one element
  Shape(std::initializer_list<uint32_t> dims);

  // Code unsupported above kMaxRank.
  static Result<Shape> from(std::span<const uint32_t> dims);

  size_t rank() const { return rank_; }
  uint32_t operator[](size_t i) const { return dims_[i]; }
  void set(size_t i, uint32_t dim) { dims_[i] = dim; }
  void append(uint32_t dim) { dims_[rank_++] = dim; }  // precondition: rank() < kMaxRank
  std::span<const uint32_t> dims() const { return {dims_.data(), rank_}; }

  // Elements. Live shapes lie within shapes whose bytes the reader checked to fit in 64 bits.
  uint64_t numel() const;
  // Elements of dims [first, last).
  uint64_t numel(size_t first, size_t last) const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<uint32_t, kMaxRank> dims_ = {};  // zeros from rank_ on
  uint8_t rank_ = 0;
};

// "[1, 63, 256]"
std::string to_string(const Shape& shape);

// A negative axis counts from the end. invalid_program when it lies outside [-rank, rank).
Result<size_t> normalize_axis(int64_t axis, size_t rank);

// NumPy broadcasting: aligned at the last dimension, where a 1 meets anything.
Result<Shape> broadcast(const Shape& a, const Shape& b);

// Elements from one index to the next, for a dense tensor of this shape.
std::array<uint32_t, kMaxRank> strides(const Shape& shape);
// The same for reading `shape` as if it were `target`, a shape it broadcasts to: 0 along what is
// repeated. Entry i belongs to target[i].
std::array<uint32_t, kMaxRank> broadcast_strides(const Shape& shape, const Shape& target);

}  // namespace ptero::graph
