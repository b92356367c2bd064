// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

Status plan_rotary_kv_cache(graph::OpCall& op);

}  // namespace ptero::ops
