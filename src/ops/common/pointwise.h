// SPDX-License-Identifier: BSD-3-Clause
// Elementwise kernels between tensors of any element types. An operator brings the WGSL of one
// element; decoding, encoding, broadcasting, grids and large tensors are dealt with here.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// What one element is computed in. float16 counts as f32; bool (0 and 1), int8 and uint8 as i32.
enum class Compute : uint8_t { f32, i32 };
Compute compute_of(pte::GraphDtype dtype);

struct Elementwise {
  // Statements of `fn apply(a: C, b: C, s: vec2<C>) -> R` (without b for one operand). C follows
  // `compute`; R the result's element type: f32 for floats, i32 for integers, bool for bool. Both
  // may call the functions of pointwise_math_part.wgsl.
  std::string_view body;
  Compute compute = Compute::f32;
  std::array<uint32_t, 2> scalars = {};  // bits of s
};

// y = apply(x), elementwise. Gives y its shape.
Status pointwise(graph::OpCall& op, const graph::TensorRef& x, graph::TensorRef& y,
                 const Elementwise& what);
// y = apply(a, b), broadcast against each other. Gives y its shape.
Status pointwise(graph::OpCall& op, const graph::TensorRef& a, const graph::TensorRef& b,
                 graph::TensorRef& y, const Elementwise& what);

// The compute type of an operator whose result has the type of its operands: code unsupported for
// a bool result, and for an integer result of a float operand.
Result<Compute> arithmetic_compute(const graph::TensorRef& y,
                                   std::initializer_list<const graph::TensorRef*> operands);

// A shape and what reads it as broadcast to it, with dimensions merged that every operand walks as
// one, so that there is at least one and often no more. Innermost first.
struct Walk {
  uint32_t rank = 1;
  std::array<uint32_t, graph::kMaxRank> dims = {1};
  std::vector<std::array<uint32_t, graph::kMaxRank>> strides;  // by operand, in elements

  // Whether the operand is dense (1) or repeats one element (0), for rank 1.
  uint32_t step(size_t operand) const { return strides[operand][0]; }
};
Walk walk(const graph::Shape& shape, std::initializer_list<const graph::TensorRef*> operands);
// The same as a member of kernel parameters.
std::array<std::array<uint32_t, 4>, 2> axes(const std::array<uint32_t, graph::kMaxRank>& values);

// A scalar argument: a number, a Bool as 0 and 1, or the live value of a SymInt.
Result<double> scalar(const graph::OpCall& op, size_t arg);
// The nearest float32's bits; beyond its range infinite.
uint32_t float_bits(double value);
// The int32 that a number means: its fraction must be 0; beyond the range of int32 the nearest.
Result<int32_t> saturated_int(double value);

}  // namespace ptero::ops
