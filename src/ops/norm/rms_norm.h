// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// y = x / sqrt(mean(x^2) + eps) * weight over the last dimension. x and y have one shape of at
// least one dimension and one type, that of the weight; nothing is empty.
Status dispatch_rms_norm(graph::OpCall& op, const graph::TensorRef& x,
                         const graph::TensorRef& weight, double eps, const graph::BufferRef& y);

}  // namespace ptero::ops
