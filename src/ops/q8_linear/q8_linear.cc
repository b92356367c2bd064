// SPDX-License-Identifier: BSD-3-Clause
// Linear layers of int8 activations and int8 weights, with one scale a row of the weight.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/adapter_routes.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/q8_linear/q8_linear.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

constexpr uint32_t kHasBias = 1;  // as in the kernel

struct Q8Linear {
  TensorRef x;       // int8 [..., K]
  TensorRef weight;  // int8 [N, at least K]
  TensorRef scales;  // at least N
  std::optional<TensorRef> bias;
  TensorRef y;
  double x_scale = 1;
  int64_t x_zero = 0;
  double y_scale = 1;  // for an int8 y
  int64_t y_zero = 0;
  bool relu = false;
};

// The sum of four products of int8, packed in words.
std::string dot4_prelude(bool packed_dot) {
  if (packed_dot) {
    return "fn dot4(a: u32, b: u32) -> i32 { return dot4I8Packed(a, b); }\n";
  }
  return "fn dot4(a: u32, b: u32) -> i32 {\n"
         "  let up = vec4u(24u, 16u, 8u, 0u);\n"
         "  return dot(bitcast<vec4i>(vec4u(a) << up) >> vec4u(24u),\n"
         "             bitcast<vec4i>(vec4u(b) << up) >> vec4u(24u));\n"
         "}\n";
}

Status check_scalar(std::string_view what, double scale, int64_t zero) {
  PTERO_REJECT_IF(!(scale > 0) || std::isinf(scale), invalid_program,
                  "Scale ({}) of {} is not a positive number.", scale, what);
  PTERO_REJECT_IF(zero < -128 || zero > 127, invalid_program, "Zero point ({}) of {} is no int8.",
                  zero, what);
  return ok_status();
}

Status check_tensors(const Q8Linear& what) {
  const size_t rank = what.x.shape.rank();
  PTERO_REJECT_IF(rank == 0 || what.weight.shape.rank() != 2, invalid_program,
                  "Shapes {} of x and {} of the weight are no linear layer.",
                  to_string(what.x.shape), to_string(what.weight.shape));
  for (const TensorRef* tensor : {&what.x, &what.weight}) {
    PTERO_REJECT_IF(tensor->dtype != pte::GraphDtype::int8, unsupported,
                    "Element type ({}) of tensor {} is not int8.", pte::name_of(tensor->dtype),
                    tensor->id);
  }
  const uint32_t k = what.x.shape[rank - 1];
  const uint32_t n = what.weight.shape[0];
  // A sum of products must fit in an int32.
  constexpr uint32_t kMaxK = 65536;
  PTERO_REJECT_IF(what.weight.shape[1] < k, invalid_program,
                  "A row of the weight ({} elements) is shorter than one of x ({}).",
                  what.weight.shape[1], k);
  PTERO_REJECT_IF(k > kMaxK, unsupported, "Length of a row of x ({}) exceeds the most ({}).", k,
                  kMaxK);
  PTERO_REJECT_IF(!what.scales.is_float() || what.scales.numel() < n, invalid_program,
                  "Scales {} ({}) are no {} numbers.", to_string(what.scales.shape),
                  pte::name_of(what.scales.dtype), n);
  PTERO_REJECT_IF(what.bias && (!what.bias->is_float() || what.bias->numel() < n), invalid_program,
                  "Bias {} ({}) is no {} numbers.", to_string(what.bias->shape),
                  pte::name_of(what.bias->dtype), n);
  PTERO_REJECT_IF(!what.y.is_float() && what.y.dtype != pte::GraphDtype::int8, unsupported,
                  "Element type ({}) of the result is neither a float nor int8.",
                  pte::name_of(what.y.dtype));
  return ok_status();
}

Status dispatch_q8_linear(OpCall& op, Q8Linear what) {
  PTERO_RETURN_IF_ERROR(check_tensors(what));
  PTERO_RETURN_IF_ERROR(check_scalar("x", what.x_scale, what.x_zero));
  PTERO_RETURN_IF_ERROR(check_scalar("the result", what.y_scale, what.y_zero));
  Shape shape = what.x.shape;
  const uint32_t k = shape[shape.rank() - 1];
  const uint32_t n = what.weight.shape[0];
  shape.set(shape.rank() - 1, n);
  PTERO_RETURN_IF_ERROR(op.set_shape(what.y, shape));
  const uint64_t elements = what.y.numel();
  if (elements == 0) {
    return ok_status();
  }
  const bool bytes = !what.y.is_float();
  const uint64_t w_row = what.weight.shape[1];
  ElementType type{"u32", {}};
  if (!bytes) {
    PTERO_ASSIGN_OR_RETURN(type, element_type(what.y));
  }
  PTERO_ASSIGN_OR_RETURN(const ElementType scale_type, element_type(what.scales));
  PTERO_ASSIGN_OR_RETURN(const ElementType bias_type,
                         element_type(what.bias.value_or(what.scales)));
  const bool packed_dot = route_for(Work::q8_products, op.device()).route == "packed";
  gpu::KernelKey key{
      .source = &wgsl::kQ8Linear,
      .prelude = fmt::format("{}alias S = {};\nalias B = {};\n{}", type.alias(), scale_type.name,
                             bias_type.name, dot4_prelude(packed_dot)),
      .overrides = {{"bytes", bytes ? 1.0 : 0.0},
                    {"whole_words", k % 4 == 0 && w_row % 4 == 0 ? 1.0 : 0.0}},
      .features = type.features | scale_type.features | bias_type.features};
  if (packed_dot) {
    key.features.insert(gpu::Feature::packed_dot);
  }
  PTERO_ASSIGN_OR_RETURN(
      const auto blocks,
      split_into_bindings("rows of a weight", n, std::array{w_row}, op.device().limits));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid,
                         linear_grid(op, bytes ? ceil_div<uint64_t>(elements, 4) : elements));
  for (const RowBlock& block : blocks) {
    PTERO_RETURN_IF_ERROR(op.dispatch(
        {key,
         {what.x, bind_rows(what.weight, block, w_row), what.scales,
          what.bias.value_or(what.scales), what.y},
         grid},
        wgsl::Q8LinearParams{.n = n,
                             .first = static_cast<uint32_t>(block.first),
                             .rows = static_cast<uint32_t>(block.count),
                             .k = k,
                             .w_row = static_cast<uint32_t>(w_row),
                             .elements = static_cast<uint32_t>(elements),
                             .x_zero = static_cast<int32_t>(what.x_zero),
                             .scale = static_cast<float>(what.x_scale),
                             .y_inverse = static_cast<float>(1 / what.y_scale),
                             .y_zero = static_cast<float>(what.y_zero),
                             .low = what.relu ? static_cast<float>(what.y_zero) : -128.0f,
                             .flags = what.bias ? kHasBias : 0}));
  }
  return ok_status();
}

// x, its scale and zero point, weight, weight_sums, scales, bias
Status plan_q8ta_q8csw(OpCall& op) {
  Q8Linear linear;
  PTERO_ASSIGN_OR_RETURN(linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(linear.x_scale, op.number(1));
  PTERO_ASSIGN_OR_RETURN(linear.x_zero, op.integer(2));
  PTERO_ASSIGN_OR_RETURN(linear.weight, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(linear.scales, op.tensor(5));
  PTERO_ASSIGN_OR_RETURN(linear.bias, op.optional_tensor(6));
  PTERO_ASSIGN_OR_RETURN(linear.y, op.output());
  PTERO_REJECT_IF(!linear.y.is_float(), unsupported, "Element type ({}) of the result is no float.",
                  pte::name_of(linear.y.dtype));
  return dispatch_q8_linear(op, std::move(linear));
}

// x, its scale and zero point, weight, weight_sums, scales, y's scale and zero point, bias,
// activation
Status plan_q8ta(OpCall& op) {
  Q8Linear linear;
  PTERO_ASSIGN_OR_RETURN(linear.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(linear.x_scale, op.number(1));
  PTERO_ASSIGN_OR_RETURN(linear.x_zero, op.integer(2));
  PTERO_ASSIGN_OR_RETURN(linear.weight, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(linear.scales, op.tensor(5));
  PTERO_ASSIGN_OR_RETURN(linear.y_scale, op.number(6));
  PTERO_ASSIGN_OR_RETURN(linear.y_zero, op.integer(7));
  PTERO_ASSIGN_OR_RETURN(linear.bias, op.optional_tensor(8));
  PTERO_ASSIGN_OR_RETURN(const std::string_view activation, op.string(9));
  PTERO_ASSIGN_OR_RETURN(linear.y, op.output());
  PTERO_REJECT_IF(activation != "none" && activation != "relu", unsupported,
                  "Activation ({}) is neither none nor relu.", activation);
  PTERO_REJECT_IF(linear.y.dtype != pte::GraphDtype::int8, unsupported,
                  "Element type ({}) of the result is not int8.", pte::name_of(linear.y.dtype));
  linear.relu = activation == "relu";
  return dispatch_q8_linear(op, std::move(linear));
}

}  // namespace

void register_q8_linear(graph::OperatorRegistry& operators) {
  operators.add("et_vk.linear_q8ta_q8csw.default", plan_q8ta_q8csw);
  operators.add("et_vk.q8ta_linear.default", plan_q8ta);
  operators.add("et_vk.q8ta_linear_gemv.default", plan_q8ta);
}

}  // namespace ptero::ops
