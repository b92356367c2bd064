// SPDX-License-Identifier: BSD-3-Clause
// The VK00 flatbuffer of a delegate -> Graph.
#pragma once

#include "base/result.h"
#include "pte/data_map.h"
#include "pte/graph.h"

namespace ptero::pte {

// Reads and checks the graph; a Graph that comes back keeps all [checked] promises of graph.h.
// Constants refer to bytes of `delegate` or of `data`, and are not read. An operator that Ptero
// does not know is no error here: the graph layer says which ones it cannot run.
// Code invalid_program with one sentence that names the field, its value and the limit.
Result<Graph> read_graph(const Delegate& delegate, const DataMap& data);

}  // namespace ptero::pte
