// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

Status plan_fused_q4gsw(graph::OpCall& op);

}  // namespace ptero::ops
