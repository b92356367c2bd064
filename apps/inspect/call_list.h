// SPDX-License-Identifier: BSD-3-Clause
// Every instruction and every call of a program, one line each, with values as people write them.
#pragma once

#include <cstdint>
#include <string>

#include "inspect/load.h"
#include "inspect/shapes.h"

namespace ptero::inspect {

// For example
//   9  et_vk.linear_q4gsw.default(%59, const u8 %1, const f32 %2, 32, none) -> %61 f32 [1, S, 576]
// Constants say so where they are used, other tensors tell their shape where they are produced.
std::string to_call_list(const LoadedProgram& loaded);

// "f32", "u8", ...: short names of element types for dense listings.
std::string_view short_dtype(pte::GraphDtype dtype);

}  // namespace ptero::inspect
