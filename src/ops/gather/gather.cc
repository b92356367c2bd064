// SPDX-License-Identifier: BSD-3-Clause
// Look-ups by index: embedding, index_select, index with one tensor, gather.
#include <algorithm>
#include <array>
#include <vector>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/gather/gather.wgsl.h"
#include "ops/gather/take_rows.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

Status require_indices(const TensorRef& indices) {
  PTERO_REJECT_IF(indices.dtype != pte::GraphDtype::int32, unsupported,
                  "Element type ({}) of indices in tensor {} is not int32.",
                  pte::name_of(indices.dtype), indices.id);
  return ok_status();
}

Status require_something_to_take(const TensorRef& x, uint64_t length) {
  PTERO_REJECT_IF(length == 0, invalid_argument, "Tensor {} (shape {}) has nothing to index.", x.id,
                  to_string(x.shape));
  return ok_status();
}

// y = x with `axis` replaced by the dimensions of the indices.
Status take_rows(OpCall& op, const TensorRef& x, size_t axis, const TensorRef& indices,
                 const Shape& shape, bool wrap) {
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(x));
  PTERO_RETURN_IF_ERROR(require_same_type(x, y));
  PTERO_RETURN_IF_ERROR(require_indices(indices));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  if (y.numel() == 0) {
    return ok_status();
  }
  const uint32_t length = x.shape[axis];
  PTERO_RETURN_IF_ERROR(require_something_to_take(x, length));
  const uint64_t outer = x.shape.numel(0, axis);
  const uint64_t inner = x.shape.numel(axis + 1, x.shape.rank());
  std::vector<RowBlock> blocks = {{0, length}};
  const uint64_t row_bytes = x.bytes() / (outer * length);
  if (outer == 1) {
    PTERO_ASSIGN_OR_RETURN(blocks, split_into_bindings("rows of a table", length,
                                                       std::array{row_bytes}, op.device().limits));
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, y.numel()));
  for (const RowBlock& block : blocks) {
    const graph::BufferRef table = bind_rows(x, block, outer * row_bytes);
    PTERO_RETURN_IF_ERROR(op.dispatch(
        {{&wgsl::kTakeRows, type.alias(), {}, type.features}, {table, indices, y}, grid},
        wgsl::TakeRowsParams{.n = static_cast<uint32_t>(y.numel()),
                             .inner = static_cast<uint32_t>(inner),
                             .count = static_cast<uint32_t>(indices.numel()),
                             .length = length,
                             .first = static_cast<uint32_t>(block.first),
                             .rows = static_cast<uint32_t>(block.count),
                             .wrap = wrap ? 1u : 0u}));
  }
  return ok_status();
}

// The shape of x with `axis` replaced by the dimensions of the indices.
Result<Shape> taken_shape(const TensorRef& x, size_t axis, const TensorRef& indices) {
  const auto dims = x.shape.dims();
  std::vector<uint32_t> taken(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis));
  taken.insert(taken.end(), indices.shape.dims().begin(), indices.shape.dims().end());
  taken.insert(taken.end(), dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, dims.end());
  return Shape::from(taken);
}

// weight [V, D], indices; what follows matters only in training.
Status plan_embedding(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef weight, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef indices, op.tensor(1));
  PTERO_REJECT_IF(weight.shape.rank() != 2, invalid_program,
                  "Rank ({}) of an embedding table is not 2.", weight.shape.rank());
  PTERO_ASSIGN_OR_RETURN(const Shape shape, taken_shape(weight, 0, indices));
  return take_rows(op, weight, 0, indices, shape, false);
}

// x, dim, index [n]
Status plan_index_select(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const TensorRef indices, op.tensor(2));
  PTERO_REJECT_IF(indices.shape.rank() > 1, invalid_program, "Rank ({}) of the index is above 1.",
                  indices.shape.rank());
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
  Shape shape = x.shape;
  shape.set(axis, static_cast<uint32_t>(indices.numel()));
  return take_rows(op, x, axis, indices, shape, false);
}

// x, [indices]: along the first dimension; negative indices count from the end.
Status plan_index(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const std::vector<TensorRef> indices, op.tensor_list(1));
  PTERO_REJECT_IF(indices.size() != 1, unsupported,
                  "Number of index tensors ({}) is not 1; this build indexes one dimension.",
                  indices.size());
  PTERO_REJECT_IF(x.shape.rank() == 0, invalid_program, "A scalar has no dimension to index.");
  PTERO_ASSIGN_OR_RETURN(const Shape shape, taken_shape(x, 0, indices[0]));
  return take_rows(op, x, 0, indices[0], shape, true);
}

// x, dim, index of x's rank
Status plan_gather(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const TensorRef index, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(x));
  PTERO_RETURN_IF_ERROR(require_same_type(x, y));
  PTERO_RETURN_IF_ERROR(require_indices(index));
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(index.shape.rank() != rank, invalid_program,
                  "Rank ({}) of the index differs from that of the input ({}).", index.shape.rank(),
                  rank);
  // PyTorch takes a scalar for a tensor of one dimension.
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, std::max<size_t>(rank, 1)));
  for (size_t i = 0; i < rank; ++i) {
    PTERO_REJECT_IF(i != axis && index.shape[i] > x.shape[i], invalid_program,
                    "Dimension {} ({}) of the index exceeds that of the input ({}).", i,
                    index.shape[i], x.shape[i]);
  }
  PTERO_RETURN_IF_ERROR(op.set_shape(y, index.shape));
  if (y.numel() == 0) {
    return ok_status();
  }
  const uint32_t length = rank == 0 ? 1 : x.shape[axis];
  PTERO_RETURN_IF_ERROR(require_something_to_take(x, length));
  wgsl::GatherParams params{.n = static_cast<uint32_t>(y.numel()),
                            .rank = static_cast<uint32_t>(rank),
                            .axis = static_cast<uint32_t>(rank == 0 ? 0 : rank - 1 - axis),
                            .length = length};
  const auto strides = graph::strides(x.shape);
  for (size_t i = 0; i < rank; ++i) {
    const size_t from = rank - 1 - i;  // the kernel counts from the innermost
    params.dims[i / 4][i % 4] = index.shape[from];
    params.x_strides[i / 4][i % 4] = strides[from];
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, y.numel()));
  return op.dispatch({{&wgsl::kGather, type.alias(), {}, type.features}, {x, index, y}, grid},
                     params);
}

}  // namespace

void register_gather(graph::OperatorRegistry& operators) {
  operators.add("aten.embedding.default", plan_embedding);
  operators.add("aten.index_select.default", plan_index_select);
  operators.add("aten.index.Tensor", plan_index);
  operators.add("aten.gather.default", plan_gather);
}

}  // namespace ptero::ops
