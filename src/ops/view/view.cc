// SPDX-License-Identifier: BSD-3-Clause
// Operators whose result holds the bytes of their input in the same order. The memory plan lets the
// two share memory wherever that is legal; elsewhere they are copied.
#include <limits>
#include <optional>
#include <vector>

#include <fmt/ranges.h>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

Status finish_view(OpCall& op, const TensorRef& x, const Shape& shape) {
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_same_type(x, y));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  return op.copy_unless_aliased(x, y);
}

// [x, ..., y]: clone, alias_copy, prepack. Memory formats and dim orders mean nothing here: buffers
// are row-major.
Status plan_same(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  return finish_view(op, x, x.shape);
}

// The live shape of a view comes from its size argument alone, never from the file's bounds.
Result<Shape> view_shape(const Shape& from, const std::vector<int64_t>& sizes) {
  PTERO_REJECT_IF(sizes.size() > graph::kMaxRank, unsupported,
                  "Rank ({}) of a view exceeds the limit of the kernels ({}).", sizes.size(),
                  graph::kMaxRank);
  Shape shape;
  std::optional<size_t> open;  // the dimension that takes what remains
  uint64_t known = 1;
  for (const int64_t size : sizes) {
    PTERO_REJECT_IF(size < -1 || size > std::numeric_limits<uint32_t>::max(), invalid_program,
                    "Size ({}) of a view is neither -1 nor a dimension.", size);
    if (size == -1) {
      PTERO_REJECT_IF(open.has_value(), invalid_program, "Sizes of a view have -1 twice.");
      open = shape.rank();
      shape.append(1);
      continue;
    }
    // Saturates: more elements than a tensor has are an error below.
    known = size != 0 && known > std::numeric_limits<uint64_t>::max() / static_cast<uint64_t>(size)
                ? std::numeric_limits<uint64_t>::max()
                : known * static_cast<uint64_t>(size);
    shape.append(static_cast<uint32_t>(size));
  }
  if (open && known != 0 && from.numel() % known == 0 &&
      from.numel() / known <= std::numeric_limits<uint32_t>::max()) {
    shape.set(*open, static_cast<uint32_t>(from.numel() / known));
    return shape;
  }
  PTERO_REJECT_IF(open || known != from.numel(), invalid_argument,
                  "A tensor {} has no view of sizes [{}].", to_string(from),
                  fmt::join(sizes, ", "));
  return shape;
}

Status plan_view(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, op.integer_list(1));
  PTERO_ASSIGN_OR_RETURN(const Shape shape, view_shape(x.shape, sizes));
  return finish_view(op, x, shape);
}

// Drops the named dimensions that are 1 by the file. One that only happens to be 1 now stays, as
// it does in the exported program.
Status plan_squeeze(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, op.integer_list(1));
  const Shape bound = op.bound(x);
  std::vector<bool> dropped(x.shape.rank());
  for (const int64_t dim : dims) {
    PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
    dropped[axis] = bound[axis] == 1;
  }
  Shape shape;
  for (size_t i = 0; i < x.shape.rank(); ++i) {
    if (!dropped[i]) {
      shape.append(x.shape[i]);
    }
  }
  return finish_view(op, x, shape);
}

Status plan_unsqueeze(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  const size_t rank = x.shape.rank() + 1;
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, rank));
  PTERO_REJECT_IF(rank > graph::kMaxRank, unsupported,
                  "Rank ({}) of a view exceeds the limit of the kernels ({}).", rank,
                  graph::kMaxRank);
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    shape.append(i < axis ? x.shape[i] : i == axis ? 1 : x.shape[i - 1]);
  }
  return finish_view(op, x, shape);
}

}  // namespace

void register_view(graph::OperatorRegistry& operators) {
  const graph::OperatorTraits view{.view = true};
  operators.add("aten.view_copy.default", plan_view, view);
  operators.add("aten.squeeze_copy.dims", plan_squeeze, view);
  operators.add("aten.unsqueeze_copy.default", plan_unsqueeze, view);
  operators.add("aten.clone.default", plan_same, view);
  operators.add("aten.alias_copy.default", plan_same, view);
  operators.add("dim_order_ops._clone_dim_order.default", plan_same, view);
  operators.add("et_vk.prepack.default", plan_same, {.view = true, .at_load = true});
}

}  // namespace ptero::ops
