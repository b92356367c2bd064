// SPDX-License-Identifier: BSD-3-Clause
// What the kernels of many families share on the host side.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// Threads of a workgroup in kernels that have no reason for another number.
inline constexpr uint32_t kThreads = 64;

// A kernel's element type in WGSL: "f32", "f16", "i32" or "u32", and what it needs switched on.
// int64 and float64 never appear in a graph; bytes (bool, int8, uint8) are packed four to a word
// and have kernels of their own. Code unsupported, naming the tensor, for those.
struct ElementType {
  std::string_view name;
  gpu::FeatureSet features;

  // "alias T = f32;\n"
  std::string alias() const;
};
Result<ElementType> element_type(const graph::TensorRef& tensor);

// For kernels of f32 and f16 alone; code unsupported, naming the tensor, for other types.
Status require_float(const graph::TensorRef& tensor);

// Both operands of an elementwise operator, or one tensor and its result, must have one type.
Status require_same_type(const graph::TensorRef& a, const graph::TensorRef& b);

// A grid with one thread for each of `threads`; kernels include "ops/common/linear_part.wgsl".
Result<gpu::Grid> linear_grid(const graph::OpCall& op, uint64_t threads);

}  // namespace ptero::ops
