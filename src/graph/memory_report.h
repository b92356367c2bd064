// SPDX-License-Identifier: BSD-3-Clause
// Device memory by what it is for: what is planned, what there is, what there was at most.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "graph/memory_plan.h"
#include "graph/pass.h"
#include "graph/planner.h"

namespace ptero::graph {

// In the order of gpu::MemoryKind.
using BytesByKind = std::array<uint64_t, gpu::kMemoryKindCount>;
uint64_t sum(const BytesByKind& bytes);
// Of two graphs that run one after the other: parameters and staging serve both.
BytesByKind together(const BytesByKind& a, const BytesByKind& b);

struct MemoryReport {
  // Of the models and sessions that the report is about.
  BytesByKind planned = {};
  // Of the whole device, whoever uses it; peaks since it was made, each kind's of its own, so that
  // their sum is not the peak of the whole.
  BytesByKind allocated = {};
  BytesByKind peak = {};
  uint64_t peak_of_all = 0;
};
// Without what is planned.
MemoryReport report_of(const gpu::DeviceStats& stats);

// What a graph takes with one session: weights, caches and activations for the largest shapes;
// scratch, parameters and what is read back for the plans of the largest shapes and of one token,
// as far as there are such plans. Outputs that stay on the device take no staging.
BytesByKind planned_bytes(const MemoryPlan& memory, Planner& planner, const DeviceFacts& device);

// The same of a graph that is not loaded. Needs no GPU.
Result<BytesByKind> planned_bytes(pte::Graph graph, const OperatorRegistry& operators,
                                  GraphPasses passes, const DeviceFacts& device);

// A device that offers everything, with the limits of a usual desktop GPU, for planning without
// one.
DeviceFacts usual_device(PlanOptions options = {});

}  // namespace ptero::graph
