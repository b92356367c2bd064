// SPDX-License-Identifier: BSD-3-Clause
// Tensors of one number.
#include <array>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/pointwise.h"
#include "ops/common/rows.h"
#include "ops/fill/fill.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;
using pte::GraphDtype;

// Where the shape comes from.
enum class ShapeFrom : uint8_t { list, tensor, nothing };

struct FillRow {
  const char* name;
  ShapeFrom shape;               // nothing: a scalar; else argument 0
  std::optional<double> number;  // none: the first argument after the shape
};

constexpr FillRow kRows[] = {
    {"aten.full.default", ShapeFrom::list, std::nullopt},
    {"aten.zeros.default", ShapeFrom::list, 0.0},
    {"aten.ones.default", ShapeFrom::list, 1.0},
    {"aten.full_like.default", ShapeFrom::tensor, std::nullopt},
    {"aten.zeros_like.default", ShapeFrom::tensor, 0.0},
    {"aten.ones_like.default", ShapeFrom::tensor, 1.0},
    {"aten.scalar_tensor.default", ShapeFrom::nothing, std::nullopt},
};

// The nearest float16, ties to even; beyond its range infinite.
uint32_t half_bits(double number) {
  const uint32_t sign = std::signbit(number) ? 0x8000 : 0;
  const double size = std::abs(number);
  if (std::isnan(number)) {
    return 0x7e00;
  }
  if (size >= 65520) {
    return sign | 0x7c00;
  }
  // Units of the last place: 2^-24 below 2^-14, then 11 bits.
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const double units = std::nearbyint(std::ldexp(size, 10 - exponent));
  return sign | (static_cast<uint32_t>(exponent + 14) * 1024 + static_cast<uint32_t>(units));
}

// A word full of the number as this type has it.
Result<uint32_t> word_of(double number, GraphDtype dtype) {
  switch (dtype) {
    case GraphDtype::float32:
      return float_bits(number);
    case GraphDtype::float16:
      return half_bits(number) * 0x00010001u;
    case GraphDtype::boolean:
      return number != 0 ? 0x01010101u : 0;
    case GraphDtype::int32:
    case GraphDtype::int8:
    case GraphDtype::uint8: {
      const double whole = std::trunc(number);  // as PyTorch
      const double low = dtype == GraphDtype::int32  ? std::numeric_limits<int32_t>::min()
                         : dtype == GraphDtype::int8 ? -128
                                                     : 0;
      const double high = dtype == GraphDtype::int32  ? std::numeric_limits<int32_t>::max()
                          : dtype == GraphDtype::int8 ? 127
                                                      : 255;
      PTERO_REJECT_IF(!(whole >= low && whole <= high), unsupported,
                      "Number ({}) lies outside of what {} holds ({} to {}).", number,
                      pte::name_of(dtype), low, high);
      const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(whole));
      return dtype == GraphDtype::int32 ? bits : (bits & 0xff) * 0x01010101u;
    }
    default:
      return make_error(ErrorCode::unsupported, "Element type ({}) of the result has no kernel.",
                        pte::name_of(dtype));
  }
}

Result<Shape> shape_of(const OpCall& op, const FillRow& row) {
  if (row.shape == ShapeFrom::nothing) {
    return Shape();
  }
  if (row.shape == ShapeFrom::tensor) {
    PTERO_ASSIGN_OR_RETURN(const TensorRef like, op.tensor(0));
    return like.shape;
  }
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, op.integer_list(0));
  std::vector<uint32_t> dims;
  for (const int64_t size : sizes) {
    PTERO_REJECT_IF(size < 0 || size > std::numeric_limits<uint32_t>::max(), invalid_program,
                    "Dimension ({}) of the result is not one.", size);
    dims.push_back(static_cast<uint32_t>(size));
  }
  return Shape::from(dims);
}

Status plan_fill(OpCall& op, const FillRow& row) {
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_ASSIGN_OR_RETURN(const Shape shape, shape_of(op, row));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  double number = row.number.value_or(0);
  if (!row.number) {
    PTERO_ASSIGN_OR_RETURN(number, scalar(op, row.shape == ShapeFrom::nothing ? 0 : 1));
  }
  PTERO_ASSIGN_OR_RETURN(const uint32_t word, word_of(number, y.dtype));
  const uint64_t words = ceil_div<uint64_t>(y.bytes(), 4);
  PTERO_ASSIGN_OR_RETURN(
      const std::vector<RowBlock> blocks,
      split_into_bindings("words", words, std::array<uint64_t, 1>{4}, op.device().limits));
  for (const RowBlock& block : blocks) {
    const graph::BufferRef part = blocks.size() == 1 ? graph::BufferRef(y) : bind_rows(y, block, 4);
    PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, block.count));
    PTERO_RETURN_IF_ERROR(
        op.dispatch({{&wgsl::kFill, {}, {}, {}}, {part}, grid},
                    wgsl::FillParams{.words = static_cast<uint32_t>(block.count), .word = word}));
  }
  return ok_status();
}

}  // namespace

void register_fill(graph::OperatorRegistry& operators) {
  for (const FillRow& row : kRows) {
    operators.add(row.name, [&row](OpCall& op) { return plan_fill(op, row); });
  }
}

}  // namespace ptero::ops
