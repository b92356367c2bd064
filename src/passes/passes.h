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

// With the option context: KV caches hold so many positions, and tables of rotary angles reach at
// least as far; rows that a table lacks continue what its own rows say. Code unsupported, with what
// is in the way, when a cache is used by more than attention, a mask or ring goes with the file's
// size, or a table is no multiple of fixed angles. A graph without caches stays as it is.
Status resize_context(pte::Graph& graph, const graph::DeviceFacts& device);

// The fusions; the option enable_fusion=false turns them all off. They look for what exporters
// write, and copies that only change a shape do not hide it. What they make computes the same
// values, but for the order in which sums are added up.

// y = (x a') sigmoid(x a') (x b') with 4-bit a and b becomes one layer of both.
Status fuse_swiglu(pte::Graph& graph, const graph::DeviceFacts& device);

// Queries, keys and values that 4-bit layers make of one x, rotated and attended to with a KV
// cache: one layer, then one kernel that rotates and fills the caches, then attention.
Status fuse_attention(pte::Graph& graph, const graph::DeviceFacts& device);

// What is added to the result of a 4-bit layer is added by the layer.
Status fuse_residual(pte::Graph& graph, const graph::DeviceFacts& device);

// A 4-bit layer that alone takes a row's rms_norm normalises it itself. Single precision only.
Status fuse_norm(pte::Graph& graph, const graph::DeviceFacts& device);

// Gives activations memory by when they live in the graph as it is now; the file's choice holds for
// the calls it was made for only.
Status place_activations(pte::Graph& graph, const graph::DeviceFacts& device);

// All of them, in the order in which they run.
const std::vector<graph::GraphPass>& standard_passes();

}  // namespace ptero::passes
