// SPDX-License-Identifier: BSD-3-Clause
// Integers that are known only when the graph runs: on the host as far as it can know them, in
// slots on the device otherwise.
#include <cstdint>
#include <iterator>
#include <limits>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/scalar/scalar_arithmetic.wgsl.h"
#include "ops/scalar/select_scalar.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::ScalarFunction;
using graph::TensorRef;

// In the order of the kernel's p.op.
constexpr ScalarFunction kFunctions[] = {{"add", graph::add_integers, 1},
                                         {"sub", graph::subtract_integers, -1},
                                         {"mul", graph::multiply_integers},
                                         {"floordiv", graph::floor_divide_integers}};

// [a, b, out]
Status plan_function(OpCall& op, const ScalarFunction& function) {
  PTERO_ASSIGN_OR_RETURN(const bool on_host, op.set_scalar(function, 0, 1));
  if (on_host) {
    return ok_status();
  }
  constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  PTERO_ASSIGN_OR_RETURN(const graph::Slot a, op.slot(0, -kAny, kAny));
  PTERO_ASSIGN_OR_RETURN(const graph::Slot b, op.slot(1, -kAny, kAny));
  PTERO_ASSIGN_OR_RETURN(const uint32_t result, op.set_scalar_on_device());
  return op.dispatch({{&wgsl::kScalarArithmetic}, {op.slots()}, {}},
                     wgsl::ScalarArithmeticParams{
                         .a = a.index,
                         .b = b.index,
                         .result = result,
                         .op = static_cast<uint32_t>(&function - std::begin(kFunctions))});
}

// [x, dim, out]: the live size.
Status plan_size(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
  return op.set_scalar(x.shape[axis]);
}

// [x, dim, index, out]: an element of x, whose other dimensions are 1.
Status plan_select_as_symint(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, op.integer(1));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x.shape.rank()));
  PTERO_ASSIGN_OR_RETURN(const int64_t index, op.integer(2));
  const int64_t size = x.shape[axis];
  PTERO_REJECT_IF(x.numel() != x.shape[axis], unsupported,
                  "A tensor {} has more than one element at an index of dimension {}.",
                  to_string(x.shape), axis);
  PTERO_REJECT_IF(index < -size || index >= size, invalid_argument,
                  "Index ({}) lies outside dimension {} of a tensor {}.", index, axis,
                  to_string(x.shape));
  const auto element = static_cast<uint32_t>(index < 0 ? index + size : index);
  PTERO_ASSIGN_OR_RETURN(const bool on_host, op.set_scalar_element(x, element));
  if (on_host) {
    return ok_status();
  }
  PTERO_REJECT_IF(x.dtype != pte::GraphDtype::int32, unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(x.dtype), x.id);
  PTERO_ASSIGN_OR_RETURN(const uint32_t result, op.set_scalar_on_device());
  return op.dispatch({{&wgsl::kSelectScalar}, {x, op.slots()}, {}},
                     wgsl::SelectScalarParams{.element = element, .result = result});
}

}  // namespace

void register_scalar(graph::OperatorRegistry& operators) {
  for (const ScalarFunction& function : kFunctions) {
    operators.add(std::string(function.name),
                  [&function](OpCall& op) { return plan_function(op, function); });
  }
  operators.add("sym_size.int", plan_size);
  operators.add("et_vk.select_as_symint.default", plan_select_as_symint);
}

}  // namespace ptero::ops
