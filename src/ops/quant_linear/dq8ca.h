// SPDX-License-Identifier: BSD-3-Clause
// 4-bit linear layers of activations that are quantised row by row.
#pragma once

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// et_vk.linear_dq8ca_q4gsw: x, its scales and zero points, weight, weight_sums, scales [G, N],
// group_size, bias.
Status plan_dq8ca_q4gsw(graph::OpCall& op);

}  // namespace ptero::ops
