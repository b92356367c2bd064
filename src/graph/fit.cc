// SPDX-License-Identifier: BSD-3-Clause
#include "graph/fit.h"

#include <algorithm>

#include "base/units.h"

namespace ptero::graph {
namespace {

std::string_view advice(gpu::MemoryKind kind) {
  switch (kind) {
    case gpu::MemoryKind::weights:
      return "Take a smaller model, one with fewer bits a weight, or another adapter.";
    case gpu::MemoryKind::cache:
      return "Export the model with a shorter context, or take another adapter.";
    default:
      return "Export the model for fewer tokens a run, or take another adapter.";
  }
}

std::string_view name_of(gpu::MemoryKind kind) {
  return kind == gpu::MemoryKind::weights ? "weights"
         : kind == gpu::MemoryKind::cache ? "a cache"
                                          : "activations";
}

}  // namespace

Status check_fit(const MemoryPlan& plan, std::string_view adapter, uint64_t max_buffer,
                 std::optional<uint64_t> memory) {
  const auto largest =
      std::max_element(plan.storages.begin(), plan.storages.end(),
                       [](const Storage& a, const Storage& b) { return a.bytes < b.bytes; });
  PTERO_REJECT_IF(largest != plan.storages.end() && largest->bytes > max_buffer, out_of_memory,
                  "The model does not fit adapter ({}): its largest buffer ({}, {}) takes {} bytes "
                  "({:.1f} MiB), and a buffer there holds at most {} ({:.1f} MiB). {}",
                  adapter, largest->label, name_of(largest->kind), largest->bytes,
                  mebibytes(largest->bytes), max_buffer, mebibytes(max_buffer),
                  advice(largest->kind));
  const uint64_t weights = plan.bytes(gpu::MemoryKind::weights);
  const uint64_t caches = plan.bytes(gpu::MemoryKind::cache);
  const uint64_t activations = plan.bytes(gpu::MemoryKind::activations);
  const uint64_t total = weights + caches + activations;
  PTERO_REJECT_IF(memory && total > *memory, out_of_memory,
                  "The model does not fit adapter ({}): it takes {} bytes (MiB: {:.1f} of weights, "
                  "{:.1f} of caches, {:.1f} of activations), and the adapter's memory has {} "
                  "({:.1f} MiB). {}",
                  adapter, total, mebibytes(weights), mebibytes(caches), mebibytes(activations),
                  *memory, mebibytes(*memory),
                  advice(caches > weights ? gpu::MemoryKind::cache : gpu::MemoryKind::weights));
  return ok_status();
}

}  // namespace ptero::graph
