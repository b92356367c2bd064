// SPDX-License-Identifier: BSD-3-Clause
// Rewrites of graphs before they are planned. Each is a function of the graph and the device alone.
#pragma once

#include <vector>

#include "base/result.h"
#include "graph/pass.h"
#include "pte/graph.h"

namespace ptero::passes {

// On a device without shader-f16, half-precision tensors become single-precision ones, and the
// constants among them are widened as they are read: the file's bytes, computed with in f32.
// Elsewhere it does nothing.
Status widen_half(pte::Graph& graph, const graph::DeviceFacts& device);

// With the option enable_f16_kv_cache, on a device with shader-f16: KV caches of float32 become
// float16, and what they start from is rounded as it is read. A cache that anything but attention
// touches, and the one that goes with it, stay as they are.
Status halve_caches(pte::Graph& graph, const graph::DeviceFacts& device);

// All of them, in the order in which they run.
const std::vector<graph::GraphPass>& standard_passes();

}  // namespace ptero::passes
