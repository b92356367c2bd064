// SPDX-License-Identifier: BSD-3-Clause
// Private to src/ops/shape: the operators that shape.cc registers.
#pragma once

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// slice.cc: parts of a tensor.
Status plan_slice(graph::OpCall& op);   // [x, dim, start, end, step, y]
Status plan_select(graph::OpCall& op);  // [x, dim, index, y]
Status plan_split(graph::OpCall& op);   // [x, sizes, dim, list of y]

// join.cc: a tensor that others are parts of.
Status plan_cat(graph::OpCall& op);  // [list of x, dim, y]
Status plan_pad(graph::OpCall& op);  // [x, pad, value, y]

// rearrange.cc: the same elements in another order, or several times.
Status plan_permute(graph::OpCall& op);        // [x, dims, y]
Status plan_flip(graph::OpCall& op);           // [x, dims, y]
Status plan_expand(graph::OpCall& op);         // [x, sizes, (implicit,) y]
Status plan_repeat(graph::OpCall& op);         // [x, repeats, y]
Status plan_pixel_shuffle(graph::OpCall& op);  // [x, factor, y]

}  // namespace ptero::ops
