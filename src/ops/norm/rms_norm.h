// SPDX-License-Identifier: BSD-3-Clause
// How rms_norm is specialised, spread over threads and dispatched.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "graph/op_call.h"
#include "ops/common/rows.h"
#include "ops/common/variant.h"

namespace ptero::ops {

// For `rows` rows of `loads` loads each (Variant::width elements a load).
Result<RowSplit> rms_norm_split(const graph::DeviceFacts& device, uint64_t rows, uint64_t loads);

// The kernel in this variant.
Result<gpu::KernelKey> rms_norm_key(const graph::DeviceFacts& device, const Variant& variant,
                                    const RowSplit& split);

// y = x / sqrt(mean(x^2) + eps) * weight over the last dimension. x and y have one shape of at
// least one dimension and one type, that of the weight; nothing is empty.
Status dispatch_rms_norm(graph::OpCall& op, const graph::TensorRef& x,
                         const graph::TensorRef& weight, double eps, const graph::BufferRef& y);

}  // namespace ptero::ops
