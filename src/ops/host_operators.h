// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "graph/host_tensor.h"

namespace ptero::ops {

// The few portable operators that exporters leave between delegates; they run on the CPU.
const graph::HostOperatorRegistry& host_operators();

}  // namespace ptero::ops
