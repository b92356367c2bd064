// SPDX-License-Identifier: BSD-3-Clause
// How attention is computed. Operators are registered with `automatic`; a registry of one's own may
// have another route, to compare them or to test one where it would not be chosen.
#pragma once

#include <cstdint>

#include "graph/operator.h"

namespace ptero::ops {

enum class AttentionRoute : uint8_t {
  automatic,     // by device and shape
  rows,          // one thread a query
  split,         // few queries: the keys are split over workgroups
  tiles,         // tiles of queries and keys pass through workgroup memory
  materialized,  // all scores in scratch memory, as many as queries times keys
};

// sdpa_with_kv_cache, custom_sdpa, et_vk.sdpa and update_cache.
void register_attention(graph::OperatorRegistry& operators, AttentionRoute route);

}  // namespace ptero::ops
