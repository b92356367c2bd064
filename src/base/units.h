// SPDX-License-Identifier: BSD-3-Clause
// Numbers as people read them.
#pragma once

#include <cstdint>

namespace ptero {

inline constexpr double mebibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

}  // namespace ptero
