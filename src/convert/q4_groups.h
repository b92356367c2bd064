// SPDX-License-Identifier: BSD-3-Clause
// Private to src/convert: numbers -> 4-bit groups.
#pragma once

#include <span>

#include "convert/weight.h"

namespace ptero::convert {

// The group of 32 whose values (nibble - 8) * scale have the smallest squared error, among those of
// a number of scales that are tried; each then moves to where the error is smallest for the nibbles
// that it led to. Numbers that are not finite count as 0.
Q4Group nearest_group(std::span<const float, kGroupSize> x);

}  // namespace ptero::convert
