// SPDX-License-Identifier: BSD-3-Clause
// A rewrite of a graph between reading and planning. src/passes has them.
#pragma once

#include <functional>
#include <span>

#include "base/result.h"
#include "graph/op_call.h"
#include "pte/graph.h"

namespace ptero::graph {

// Depends on the graph and the device alone. Afterwards the graph keeps all rules of pte/graph.h.
using GraphPass = std::function<Status(pte::Graph&, const DeviceFacts&)>;
// Run in order. What it looks at outlives the loading.
using GraphPasses = std::span<const GraphPass>;

}  // namespace ptero::graph
