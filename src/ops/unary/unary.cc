// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic of one tensor, with or without scalar arguments.
#include <cmath>
#include <limits>
#include <string_view>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/pointwise.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::TensorRef;

// One row an operator: a body of pointwise.h for float results and one for integer results.
struct UnaryRow {
  std::string_view name;
  std::string_view float_body;
  std::string_view int_body = {};  // empty: PyTorch gives a float for integers too, or refuses
};

// exp() overflows into infinity, and what follows from infinity is left open in WGSL; arguments are
// kept where nothing overflows and the result no longer changes. A NaN is told by its bits:
// compilers may take comparisons to have none.
constexpr UnaryRow kRows[] = {
    {"aten.abs.default", "return abs(a);", "return abs(a);"},
    {"aten.neg.default", "return -a;", "return -a;"},
    {"aten.exp.default", "return exp(a);"},
    {"aten.sqrt.default", "return sqrt(a);"},
    {"aten.rsqrt.default", "return inverseSqrt(a);"},
    {"aten.sin.default", "return sine(a, 0);"},
    {"aten.cos.default", "return sine(a, 1);"},
    {"aten.tanh.default", "return select(tanh(clamp(a, -15.0, 15.0)), a, is_nan(a));"},
    {"aten.sigmoid.default", "return select(1.0 / (1.0 + exp(-max(a, -87.0))), a, is_nan(a));"},
    {"aten.round.default", "return round(a);", "return a;"},  // WGSL takes ties to even as well
    {"aten.relu.default", "return select(max(a, 0.0), a, is_nan(a));", "return max(a, 0);"},
    {"aten.hardswish.default", "return a * select(clamp(a + 3.0, 0.0, 6.0), a, is_nan(a)) / 6.0;"},
};

constexpr UnaryRow kLeakyRelu = {"aten.leaky_relu.default", "return select(a * s.x, a, a > 0.0);"};
// aten.clamp and aten.hardtanh: the upper bound wins over the lower.
constexpr UnaryRow kClamp = {"",
                             "let low = select(a, s.x, a < s.x);\n"
                             "  return select(select(low, s.y, low > s.y), a, is_nan(a));",
                             "return min(max(a, s.x), s.y);"};

constexpr std::string_view kGeluErf = "return 0.5 * a * (1.0 + error_function(a * 0.70710678));";
// a * (1 + tanh(u)) / 2 as a * sigmoid(2 u), which keeps what is left far below 0.
constexpr std::string_view kGeluTanh =
    "let u2 = 1.59576912 * a * (1.0 + 0.044715 * a * a);\n"
    "  return a / (1.0 + exp(-clamp(u2, -87.0, 87.0)));";

struct UnaryTensors {
  TensorRef x;
  TensorRef y;
  Elementwise what;
};

Result<UnaryTensors> read_unary(OpCall& op, const UnaryRow& row) {
  UnaryTensors result;
  PTERO_ASSIGN_OR_RETURN(result.x, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(result.y, op.output());
  PTERO_ASSIGN_OR_RETURN(result.what.compute, arithmetic_compute(result.y, {&result.x}));
  result.what.body = result.what.compute == Compute::f32 ? row.float_body : row.int_body;
  PTERO_REJECT_IF(result.what.body.empty(), unsupported,
                  "Element type ({}) of the result is not float.", pte::name_of(result.y.dtype));
  return result;
}

Status plan_unary(OpCall& op, const UnaryRow& row) {
  PTERO_ASSIGN_OR_RETURN(UnaryTensors t, read_unary(op, row));
  return pointwise(op, t.x, t.y, t.what);
}

Status plan_leaky_relu(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(UnaryTensors t, read_unary(op, kLeakyRelu));
  double slope = 0.01;
  if (op.arg_count() > 2) {
    PTERO_ASSIGN_OR_RETURN(slope, scalar(op, 1));
  }
  t.what.scalars[0] = float_bits(slope);
  return pointwise(op, t.x, t.y, t.what);
}

Status plan_clamp(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(UnaryTensors t, read_unary(op, kClamp));
  double bounds[] = {-std::numeric_limits<double>::infinity(),
                     std::numeric_limits<double>::infinity()};
  for (size_t i = 0; i < 2; ++i) {
    if (!op.is_null(1 + i)) {
      PTERO_ASSIGN_OR_RETURN(bounds[i], scalar(op, 1 + i));
    }
    if (t.what.compute == Compute::f32) {
      t.what.scalars[i] = float_bits(bounds[i]);
    } else {
      PTERO_ASSIGN_OR_RETURN(const int32_t bound, saturated_int(bounds[i]));
      t.what.scalars[i] = static_cast<uint32_t>(bound);
    }
  }
  return pointwise(op, t.x, t.y, t.what);
}

Status plan_gelu(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const std::string_view form, op.string(1));
  PTERO_REJECT_IF(form != "none" && form != "tanh", unsupported,
                  "Approximation ({}) is neither none nor tanh.", form);
  return plan_unary(op, {"", form == "none" ? kGeluErf : kGeluTanh});
}

// What PyTorch computes without a logarithm, this does too.
std::string_view float_power(double exponent) {
  constexpr std::pair<double, std::string_view> kExact[] = {
      {0, "return 1.0;"},
      {1, "return a;"},
      {2, "return a * a;"},
      {3, "return a * a * a;"},
      {4, "let b = a * a;\n  return b * b;"},
      {0.5, "return sqrt(a);"},
      {-0.5, "return inverseSqrt(a);"},
      {-1, "return 1.0 / a;"},
      {-2, "return 1.0 / (a * a);"},
  };
  for (const auto& [value, body] : kExact) {
    if (value == exponent) {
      return body;
    }
  }
  return "return power(a, s.x);";
}

Status plan_power(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const double exponent, scalar(op, 1));
  PTERO_ASSIGN_OR_RETURN(
      UnaryTensors t, read_unary(op, {"", float_power(exponent), "return integer_power(a, s.x);"}));
  if (t.what.compute == Compute::f32) {
    t.what.scalars[0] = float_bits(exponent);
  } else {
    PTERO_ASSIGN_OR_RETURN(const int32_t n, saturated_int(exponent));
    PTERO_REJECT_IF(n < 0, unsupported, "Exponent ({}) of integer elements is below 0.", exponent);
    t.what.scalars[0] = static_cast<uint32_t>(n);
  }
  return pointwise(op, t.x, t.y, t.what);
}

}  // namespace

void register_unary(graph::OperatorRegistry& operators) {
  for (const UnaryRow& row : kRows) {
    operators.add(std::string(row.name), [&row](OpCall& op) { return plan_unary(op, row); });
  }
  operators.add(std::string(kLeakyRelu.name), plan_leaky_relu);
  operators.add("aten.clamp.default", plan_clamp);
  operators.add("aten.hardtanh.default", plan_clamp);
  operators.add("aten.gelu.default", plan_gelu);
  operators.add("aten.pow.Tensor_Scalar", plan_power);
}

}  // namespace ptero::ops
