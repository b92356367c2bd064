// SPDX-License-Identifier: BSD-3-Clause
#include "graph/memory_report.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"

namespace ptero::graph {
namespace {

uint64_t& of(BytesByKind& bytes, gpu::MemoryKind kind) {
  return bytes[static_cast<size_t>(kind)];
}

// Parameters that go through the ring of uniforms.
size_t uniform_dispatches(const Plan& plan, const DeviceFacts& device) {
  return static_cast<size_t>(
      std::count_if(plan.commands.begin(), plan.commands.end(), [&](const auto& command) {
        const auto* dispatch = std::get_if<PlannedDispatch>(&command);
        return dispatch != nullptr &&
               gpu::params_route(*dispatch->kernel.source, device.features) ==
                   gpu::ParamsRoute::uniform;
      }));
}

}  // namespace

uint64_t sum(const BytesByKind& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

BytesByKind together(const BytesByKind& a, const BytesByKind& b) {
  BytesByKind bytes = {};
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto kind = static_cast<gpu::MemoryKind>(i);
    const bool shared = kind == gpu::MemoryKind::staging || kind == gpu::MemoryKind::uniforms;
    bytes[i] = shared ? std::max(a[i], b[i]) : a[i] + b[i];
  }
  return bytes;
}

MemoryReport report_of(const gpu::DeviceStats& stats) {
  return {.planned = {},
          .allocated = stats.bytes_by_kind,
          .peak = stats.peak_by_kind,
          .peak_of_all = stats.bytes_peak};
}

BytesByKind planned_bytes(const MemoryPlan& memory, Planner& planner, const DeviceFacts& device) {
  BytesByKind bytes = {};
  for (const Storage& storage : memory.storages) {
    of(bytes, storage.kind) += storage.bytes;
  }
  std::vector<uint64_t> scratch;
  size_t dispatches = 0;
  uint64_t staging = 0;
  for (const auto& inputs : {planner.largest_inputs(), planner.smallest_inputs()}) {
    const Result<PlannedRun> run =
        inputs.ok() ? planner.plan(*inputs) : Result<PlannedRun>(inputs.error());
    if (!run.ok()) {
      continue;
    }
    const Plan& plan = *run->plan;
    scratch.resize(std::max(scratch.size(), plan.scratch.size()));
    for (size_t i = 0; i < plan.scratch.size(); ++i) {
      scratch[i] = std::max(scratch[i], plan.scratch[i]);
    }
    dispatches = std::max(dispatches, uniform_dispatches(plan, device));
    staging = std::max(staging, planner.output_bytes(plan));
  }
  of(bytes, gpu::MemoryKind::scratch) += std::accumulate(scratch.begin(), scratch.end(), 0ull);
  of(bytes, gpu::MemoryKind::staging) += staging;
  if (dispatches > 0) {
    of(bytes, gpu::MemoryKind::uniforms) +=
        gpu::uniform_ring_bytes(dispatches * gpu::kUniformSlotBytes);
  }
  return bytes;
}

Result<BytesByKind> planned_bytes(pte::Graph graph, const OperatorRegistry& operators,
                                  GraphPasses passes, const DeviceFacts& device) {
  for (const GraphPass& pass : passes) {
    PTERO_RETURN_IF_ERROR(pass(graph, device));
  }
  PTERO_ASSIGN_OR_RETURN(const MemoryPlan memory, plan_memory(graph, operators));
  Planner planner(graph, memory, operators, device);
  return planned_bytes(memory, planner, device);
}

DeviceFacts usual_device(PlanOptions options) {
  DeviceFacts facts;
  facts.limits.max_buffer_size = uint64_t{4} << 30;
  facts.limits.max_storage_binding_size = (uint64_t{4} << 30) - 4;
  facts.limits.max_storage_buffers_per_stage = 16;
  facts.limits.min_storage_offset_alignment = 256;
  facts.limits.max_workgroup_storage_size = 32768;
  facts.limits.max_invocations_per_workgroup = 1024;
  facts.limits.max_workgroup_size_x = 1024;
  facts.limits.max_workgroups_per_dimension = 65535;
  facts.features = gpu::FeatureSet::all();
  facts.subgroup_min_size = 32;
  facts.subgroup_max_size = 32;
  facts.matrix_shapes = {{gpu::MatrixType::f16, gpu::MatrixType::f32, 16, 16, 16}};
  facts.is_software = options.adapter_routes == "software";
  facts.options = std::move(options);
  return facts;
}

}  // namespace ptero::graph
