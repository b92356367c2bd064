// SPDX-License-Identifier: BSD-3-Clause
// How many arguments each operator of the Vulkan partitioner takes. The graph reader refuses calls
// of known operators with another count, so that code that runs one may index its arguments.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace ptero::pte {

// Counts include what the call produces, which is always the last argument (one value, or one
// ValueIdList for several). Exporters write every argument of the torch schema, so a call normally
// has max_args; a range is given where graphs without trailing arguments that have defaults exist.
struct OperatorSignature {
  std::string_view name;
  size_t min_args;
  size_t max_args;
};

// Null for an operator that is not in the table, which is no error.
const OperatorSignature* find_operator_signature(std::string_view name);

// Sorted by name.
std::span<const OperatorSignature> operator_signatures();

}  // namespace ptero::pte
