// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "graph/operator.h"

namespace ptero::ops {

// Adds every operator of this build. Defined in a file that the build generates from the folders.
void register_all(graph::OperatorRegistry& operators);

// The same, made on first use and shared: what models are loaded with.
const graph::OperatorRegistry& all_operators();

}  // namespace ptero::ops
