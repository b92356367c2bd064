// SPDX-License-Identifier: BSD-3-Clause
// Whether a device can hold a graph, said before anything is uploaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "graph/memory_plan.h"

namespace ptero::graph {

// `max_buffer`: bytes that a buffer of the device may have. `memory`: bytes of all its memory, if
// that is known; a graph with one session has to lie below. Code out_of_memory, with what is too
// large, both numbers and what helps.
Status check_fit(const MemoryPlan& plan, std::string_view adapter, uint64_t max_buffer,
                 std::optional<uint64_t> memory);

}  // namespace ptero::graph
