// SPDX-License-Identifier: BSD-3-Clause
// Comparisons and logic, with bool results, and the choice between two tensors by a bool one.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/pointwise.h"
#include "ops/compare/where.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

struct CompareRow {
  std::string_view name;
  std::string_view body;
};

// Integers are compared as integers: float32 cannot tell neighbours apart from 2^24 on.
constexpr CompareRow kTensorRows[] = {
    {"aten.eq.Tensor", "return a == b;"},
    {"aten.ne.Tensor", "return a != b;"},
    {"aten.lt.Tensor", "return a < b;"},
    {"aten.le.Tensor", "return a <= b;"},
    {"aten.gt.Tensor", "return a > b;"},
    {"aten.ge.Tensor", "return a >= b;"},
    {"aten.logical_and.default", "return a != C(0) && b != C(0);"},
    {"aten.logical_or.default", "return a != C(0) || b != C(0);"},
};

// s.x is the scalar.
constexpr CompareRow kScalarRows[] = {
    {"eq", "return a == s.x;"}, {"ne", "return a != s.x;"}, {"lt", "return a < s.x;"},
    {"le", "return a <= s.x;"}, {"gt", "return a > s.x;"},  {"ge", "return a >= s.x;"},
};

Status require_bool(const TensorRef& tensor) {
  PTERO_REJECT_IF(tensor.dtype != pte::GraphDtype::boolean, unsupported,
                  "Element type ({}) of tensor {} is not bool.", pte::name_of(tensor.dtype),
                  tensor.id);
  return ok_status();
}

Status plan_compare(OpCall& op, const CompareRow& row) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef b, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_bool(y));
  const bool floats = a.is_float() || b.is_float();
  return pointwise(op, a, b, y, {row.body, floats ? Compute::f32 : Compute::i32});
}

// Which integers x satisfy "x <relation> number", as the range [low, high], empty when low > high;
// for ne those that do not.
struct IntRange {
  int64_t low;
  int64_t high;
};

IntRange int_range(std::string_view relation, double number) {
  constexpr int64_t kLow = INT32_MIN;
  constexpr int64_t kHigh = INT32_MAX;
  if (std::isnan(number)) {
    return {1, 0};
  }
  // One beyond int32 on either side stands for everything further out.
  const auto whole = [](double value) {
    return static_cast<int64_t>(std::clamp(value, kLow - 1.0, kHigh + 1.0));
  };
  const int64_t below = whole(std::floor(number));
  const int64_t above = whole(std::ceil(number));
  if (relation == "lt") {
    return {kLow, above - 1};
  }
  if (relation == "le") {
    return {kLow, std::min(below, kHigh)};
  }
  if (relation == "gt") {
    return {below + 1, kHigh};
  }
  if (relation == "ge") {
    return {std::max(above, kLow), kHigh};
  }
  return below > kHigh || above < kLow ? IntRange{1, 0} : IntRange{above, below};
}

Status plan_compare_scalar(OpCall& op, const CompareRow& row) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const double number, scalar(op, 1));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_bool(y));
  if (x.is_float()) {
    return pointwise(op, x, y, {row.body, Compute::f32, {float_bits(number), 0}});
  }
  // Exact for every number: fractions, and those beyond int32, which int64 models compare with.
  IntRange range = int_range(row.name, number);
  if (range.low > INT32_MAX || range.high < INT32_MIN) {
    range = {1, 0};
  }
  const std::string_view body =
      row.name == "ne" ? "return a < s.x || a > s.y;" : "return a >= s.x && a <= s.y;";
  return pointwise(
      op, x, y,
      {body, Compute::i32, {static_cast<uint32_t>(range.low), static_cast<uint32_t>(range.high)}});
}

Status plan_logical_not(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_bool(y));
  return pointwise(op, x, y, {"return a == C(0);", compute_of(x.dtype)});
}

// Bitwise operators: of bools the logical ones, of integers all bits.
Status plan_bitwise(OpCall& op, std::string_view sign) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef b, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_same_type(a, b));
  PTERO_RETURN_IF_ERROR(require_same_type(a, y));
  PTERO_REJECT_IF(a.is_float(), unsupported, "Element type ({}) has no bitwise operators.",
                  pte::name_of(a.dtype));
  const bool bools = y.dtype == pte::GraphDtype::boolean;
  const std::string body = fmt::format("return (a {} b){};", sign, bools ? " != 0" : "");
  return pointwise(op, a, b, y, {body, Compute::i32});
}

Status plan_bitwise_not(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_same_type(x, y));
  PTERO_REJECT_IF(x.is_float(), unsupported, "Element type ({}) has no bitwise operators.",
                  pte::name_of(x.dtype));
  const bool bools = y.dtype == pte::GraphDtype::boolean;
  return pointwise(op, x, y, {bools ? "return a == 0;" : "return ~a;", Compute::i32});
}

Status plan_where(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef condition, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const TensorRef a, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const TensorRef b, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_RETURN_IF_ERROR(require_bool(condition));
  PTERO_RETURN_IF_ERROR(require_same_type(a, b));
  PTERO_RETURN_IF_ERROR(require_same_type(a, y));
  PTERO_ASSIGN_OR_RETURN(const Shape values, graph::broadcast(a.shape, b.shape));
  PTERO_ASSIGN_OR_RETURN(const Shape shape, graph::broadcast(condition.shape, values));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  const std::optional<uint32_t> size = pte::element_size(y.dtype);
  PTERO_REJECT_IF(!size || *size > 4 || y.numel() > uint64_t{1} << 31, unsupported,
                  "Result {} of type {} has no kernel.", to_string(shape), pte::name_of(y.dtype));
  const uint32_t lanes = 4 / *size;
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid,
                         linear_grid(op, ceil_div<uint64_t>(y.numel(), lanes)));
  const Walk path = walk(shape, {&condition, &a, &b});
  return op.dispatch({{&wgsl::kWhere, {}, {{"lanes", static_cast<double>(lanes)}}, {}},
                      {condition, a, b, y},
                      grid},
                     wgsl::WhereParams{.n = static_cast<uint32_t>(y.numel()),
                                       .rank = path.rank,
                                       .dims = axes(path.dims),
                                       .c_strides = axes(path.strides[0]),
                                       .a_strides = axes(path.strides[1]),
                                       .b_strides = axes(path.strides[2])});
}

}  // namespace

void register_compare(graph::OperatorRegistry& operators) {
  for (const CompareRow& row : kTensorRows) {
    operators.add(std::string(row.name), [&row](OpCall& op) { return plan_compare(op, row); });
  }
  for (const CompareRow& row : kScalarRows) {
    operators.add(fmt::format("aten.{}.Scalar", row.name),
                  [&row](OpCall& op) { return plan_compare_scalar(op, row); });
  }
  operators.add("aten.logical_not.default", plan_logical_not);
  operators.add("aten.bitwise_and.Tensor", [](OpCall& op) { return plan_bitwise(op, "&"); });
  operators.add("aten.bitwise_or.Tensor", [](OpCall& op) { return plan_bitwise(op, "|"); });
  operators.add("aten.bitwise_not.default", plan_bitwise_not);
  operators.add("aten.where.self", plan_where);
}

}  // namespace ptero::ops
