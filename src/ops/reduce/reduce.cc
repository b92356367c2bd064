// SPDX-License-Identifier: BSD-3-Clause
// Sums, means, extrema and their positions over any dimensions.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/reduce/extremum.wgsl.h"
#include "ops/reduce/sum.wgsl.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

using Axes = std::array<bool, graph::kMaxRank>;

// Elements that become one: `rows` lines of `length` elements, `stride` apart.
struct Lines {
  uint64_t rows = 1;
  uint64_t length = 1;
  uint64_t stride = 1;
};

// A list of axes or one axis; Null and an empty list mean all, as in PyTorch.
Result<Axes> reduced_axes(const OpCall& op, size_t arg, bool is_list, size_t rank) {
  std::vector<int64_t> listed;
  if (!op.is_null(arg) && is_list) {
    PTERO_ASSIGN_OR_RETURN(listed, op.integer_list(arg));
  } else if (!op.is_null(arg)) {
    PTERO_ASSIGN_OR_RETURN(const int64_t axis, op.integer(arg));
    listed.push_back(axis);
  }
  Axes axes = {};
  if (listed.empty()) {
    axes.fill(true);
  }
  for (const int64_t axis : listed) {
    // PyTorch takes a scalar for a tensor of one dimension.
    PTERO_ASSIGN_OR_RETURN(const size_t at, graph::normalize_axis(axis, std::max<size_t>(rank, 1)));
    PTERO_REJECT_IF(axes[at], invalid_program, "Axis ({}) is reduced twice.", axis);
    axes[at] = true;
  }
  return axes;
}

Shape reduced_shape(const Shape& shape, const Axes& axes, bool keep) {
  Shape result;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (!axes[i]) {
      result.append(shape[i]);
    } else if (keep) {
      result.append(1);
    }
  }
  return result;
}

// The passes that reduce these axes, one for each run of neighbours, from the innermost out: each
// reads what the one before made. Dimensions of 1 are no obstacle between neighbours.
std::vector<Lines> passes_over(const Shape& shape, const Axes& axes) {
  std::vector<Lines> passes;
  uint64_t inner = 1;  // elements behind the axis, of what is left
  bool in_run = false;
  for (size_t i = shape.rank(); i-- > 0;) {
    if (shape[i] == 1) {
      continue;
    }
    if (!axes[i]) {
      inner *= shape[i];
      in_run = false;
    } else if (in_run) {
      passes.back().length *= shape[i];
    } else {
      passes.push_back({.length = shape[i], .stride = inner});
      in_run = true;
    }
  }
  uint64_t left = shape.numel();
  for (Lines& pass : passes) {
    left /= pass.length;
    pass.rows = left;
  }
  if (passes.empty()) {
    passes.push_back({.rows = left});
  }
  return passes;
}

struct Reduction {
  TensorRef x;
  TensorRef y;
  std::vector<Lines> passes;
  uint64_t count = 1;  // elements that become one
};

// x, dims, keepdim
Result<Reduction> read_reduction(OpCall& op, bool dims_are_list) {
  Reduction reduction;
  PTERO_ASSIGN_OR_RETURN(reduction.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(reduction.y, op.output());
  const Shape& shape = reduction.x.shape;
  PTERO_ASSIGN_OR_RETURN(const Axes axes, reduced_axes(op, 1, dims_are_list, shape.rank()));
  PTERO_ASSIGN_OR_RETURN(const bool keep, op.boolean(2));
  PTERO_RETURN_IF_ERROR(op.set_shape(reduction.y, reduced_shape(shape, axes, keep)));
  for (size_t i = 0; i < shape.rank(); ++i) {
    reduction.count *= axes[i] ? shape[i] : 1;
  }
  const uint64_t results = reduction.y.numel();
  if (results > 0 && reduction.count > 0) {
    reduction.passes = passes_over(shape, axes);
  } else if (results > 0) {
    reduction.passes.push_back({.rows = results, .length = 0});
  }
  return reduction;
}

std::string conversion(std::string_view alias, std::string_view type) {
  return fmt::format("alias {} = {};\n", alias, type);
}

// `scaled`: divided by the number of elements.
Status plan_sum(OpCall& op, bool scaled) {
  PTERO_ASSIGN_OR_RETURN(const Reduction reduction, read_reduction(op, true));
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(reduction.x));
  PTERO_ASSIGN_OR_RETURN(const ElementType result, element_type(reduction.y));
  const bool integers = !reduction.x.is_float();
  PTERO_REJECT_IF(scaled && integers, unsupported, "A mean of integers ({}) is not defined.",
                  pte::name_of(reduction.x.dtype));
  const std::string_view sum = integers ? "i32" : "f32";
  std::optional<BufferRef> partial;  // what the last pass made
  for (size_t i = 0; i < reduction.passes.size(); ++i) {
    const Lines& lines = reduction.passes[i];
    const bool last = i + 1 == reduction.passes.size();
    PTERO_ASSIGN_OR_RETURN(const RowSplit split,
                           split_rows(op, lines.rows, lines.length, lines.stride));
    BufferRef target(reduction.y);
    if (!last) {
      PTERO_ASSIGN_OR_RETURN(target, op.scratch(lines.rows * 4));
    }
    gpu::KernelKey key{&wgsl::kSum, {}, split.overrides(), type.features | result.features};
    key.prelude = conversion("T", partial ? sum : type.name) +
                  conversion("R", last ? result.name : sum) + conversion("Sum", sum) +
                  fmt::format("fn finish(sum: Sum) -> R {{\n  return R(sum{});\n}}\n",
                              last && scaled ? " * p.scale" : "");
    PTERO_RETURN_IF_ERROR(op.dispatch(
        {std::move(key), {partial.value_or(reduction.x), target}, split.grid},
        wgsl::SumParams{.rows = static_cast<uint32_t>(lines.rows),
                        .length = static_cast<uint32_t>(lines.length),
                        .stride = static_cast<uint32_t>(lines.stride),
                        .scale = static_cast<float>(1.0 / static_cast<double>(reduction.count))}));
    partial = target;
  }
  return ok_status();
}

// Keys in the order of the elements, for the kernel. -0 equals 0.
constexpr std::string_view kFloatOrder = R"(
fn order_of(x: T) -> u32 {
  let bits = bitcast<u32>(f32(x));
  let magnitude = bits & 0x7fffffffu;
  return select(0x80000000u + magnitude, 0x80000000u - magnitude, bits != magnitude);
}
fn is_nan(x: T) -> bool {
  return (bitcast<u32>(f32(x)) & 0x7fffffffu) > 0x7f800000u;
}
)";
constexpr std::string_view kIntegerOrder = R"(
fn order_of(x: T) -> u32 {
  return bitcast<u32>(x) ^ 0x80000000u;
}
fn is_nan(x: T) -> bool {
  return false;
}
)";

struct ExtremumRow {
  const char* name;
  bool smallest;
  bool position;  // of one axis, else the value over a list of axes
};

constexpr ExtremumRow kExtrema[] = {
    {"aten.amax.default", false, false},
    {"aten.amin.default", true, false},
    {"aten.argmax.default", false, true},
    {"aten.argmin.default", true, true},
};

Status plan_extremum(OpCall& op, const ExtremumRow& row) {
  PTERO_ASSIGN_OR_RETURN(const Reduction reduction, read_reduction(op, !row.position));
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(reduction.x));
  PTERO_ASSIGN_OR_RETURN(const ElementType result, element_type(reduction.y));
  if (row.position) {
    PTERO_REJECT_IF(reduction.y.dtype != pte::GraphDtype::int32, invalid_program,
                    "Element type ({}) of positions in tensor {} is not int32.",
                    pte::name_of(reduction.y.dtype), reduction.y.id);
  } else {
    PTERO_RETURN_IF_ERROR(require_same_type(reduction.x, reduction.y));
  }
  PTERO_REJECT_IF(reduction.count == 0, invalid_argument,
                  "Of no elements (shape {}) none is the largest or smallest.",
                  to_string(reduction.x.shape));
  const uint64_t item = reduction.x.dtype == pte::GraphDtype::float16 ? 2 : 4;
  std::optional<BufferRef> partial;
  for (size_t i = 0; i < reduction.passes.size(); ++i) {
    const Lines& lines = reduction.passes[i];
    PTERO_ASSIGN_OR_RETURN(const RowSplit split,
                           split_rows(op, lines.rows, lines.length, lines.stride));
    BufferRef target(reduction.y);
    if (i + 1 < reduction.passes.size()) {
      PTERO_ASSIGN_OR_RETURN(target, op.scratch(lines.rows * item));
    }
    gpu::KernelKey key{&wgsl::kExtremum, {}, split.overrides(), type.features};
    key.prelude = type.alias() + conversion("R", result.name);
    key.prelude += reduction.x.is_float() ? kFloatOrder : kIntegerOrder;
    key.overrides.push_back({"position", row.position ? 1.0 : 0.0});
    PTERO_RETURN_IF_ERROR(
        op.dispatch({std::move(key), {partial.value_or(reduction.x), target}, split.grid},
                    wgsl::ExtremumParams{.rows = static_cast<uint32_t>(lines.rows),
                                         .length = static_cast<uint32_t>(lines.length),
                                         .stride = static_cast<uint32_t>(lines.stride),
                                         .flip = row.smallest ? 0xffffffffu : 0u}));
    partial = target;
  }
  return ok_status();
}

}  // namespace

void register_reduce(graph::OperatorRegistry& operators) {
  operators.add("aten.sum.dim_IntList", [](OpCall& op) { return plan_sum(op, false); });
  operators.add("aten.mean.dim", [](OpCall& op) { return plan_sum(op, true); });
  for (const ExtremumRow& row : kExtrema) {
    operators.add(row.name, [&row](OpCall& op) { return plan_extremum(op, row); });
  }
}

}  // namespace ptero::ops
