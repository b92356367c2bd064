// SPDX-License-Identifier: BSD-3-Clause
// Elementwise operators of two tensors, broadcast against each other.
#include <string>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/binary/binary.wgsl.h"
#include "ops/binary/binary_broadcast.wgsl.h"
#include "ops/common/kernel_types.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// One row an operator; `body` computes it from a, b and alpha.
struct BinaryRow {
  const char* name;
  const char* body;
  bool has_alpha = false;
};

constexpr BinaryRow kRows[] = {
    {"aten.add.Tensor", "return a + alpha * b;", true},
    {"aten.sub.Tensor", "return a - alpha * b;", true},
    {"aten.mul.Tensor", "return a * b;"},
    {"aten.div.Tensor", "return a / b;"},
    {"aten.minimum.default", "return min(a, b);"},
};

Status dispatch_binary(OpCall& op, const std::string& body, const TensorRef& a, const TensorRef& b,
                       double alpha) {
  PTERO_RETURN_IF_ERROR(require_same_type(a, b));
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(a));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_same_type(a, y));
  PTERO_ASSIGN_OR_RETURN(const Shape shape, graph::broadcast(a.shape, b.shape));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  const std::string prelude =
      fmt::format("{}fn apply(a: T, b: T, alpha: T) -> T {{\n  {}\n}}\n", type.alias(), body);
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, y.numel()));
  const uint32_t n = static_cast<uint32_t>(y.numel());

  const auto step = [&](const TensorRef& x) { return x.numel() == y.numel() ? 1u : 0u; };
  const auto simple = [&](const TensorRef& x) { return x.numel() == y.numel() || x.numel() == 1; };
  if (simple(a) && simple(b)) {
    return op.dispatch(
        {{&wgsl::kBinary, prelude, {}, type.features}, {a, b, y}, grid},
        wgsl::BinaryParams{
            .n = n, .a_step = step(a), .b_step = step(b), .alpha = static_cast<float>(alpha)});
  }
  wgsl::BinaryBroadcastParams params{
      .n = n, .rank = static_cast<uint32_t>(shape.rank()), .alpha = static_cast<float>(alpha)};
  const auto a_strides = graph::broadcast_strides(a.shape, shape);
  const auto b_strides = graph::broadcast_strides(b.shape, shape);
  for (size_t i = 0; i < shape.rank(); ++i) {
    const size_t from = shape.rank() - 1 - i;  // the kernel counts from the innermost
    params.dims[i / 4][i % 4] = shape[from];
    params.a_strides[i / 4][i % 4] = a_strides[from];
    params.b_strides[i / 4][i % 4] = b_strides[from];
  }
  return op.dispatch({{&wgsl::kBinaryBroadcast, prelude, {}, type.features}, {a, b, y}, grid},
                     params);
}

Status plan_binary(OpCall& op, const BinaryRow& row) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef b, op.tensor(1));
  double alpha = 1;
  if (row.has_alpha) {
    PTERO_ASSIGN_OR_RETURN(alpha, op.number_or(2, 1));
  }
  return dispatch_binary(op, row.body, a, b, alpha);
}

}  // namespace

void register_binary(graph::OperatorRegistry& operators) {
  for (const BinaryRow& row : kRows) {
    operators.add(row.name, [&row](OpCall& op) { return plan_binary(op, row); });
  }
}

}  // namespace ptero::ops
