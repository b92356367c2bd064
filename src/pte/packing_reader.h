// SPDX-License-Identifier: BSD-3-Clause
// The packed-weight operators' own rules: weights, scales and group size have to agree, or a
// kernel reads past them. Private to src/pte: read_graph() applies it to every call.
#pragma once

#include "base/result.h"
#include "pte/graph.h"

namespace ptero::pte {

// `call` is of `graph`, whose ids and argument counts are checked. Calls of operators without
// packed weights pass.
Status check_packing(const Graph& graph, const OperatorCall& call);

}  // namespace ptero::pte
