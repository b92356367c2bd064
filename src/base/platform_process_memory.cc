// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_memory.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/resource.h>
#endif

namespace ptero {

std::optional<uint64_t> peak_host_bytes() {
#if defined(__unix__) || defined(__APPLE__)
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0 || usage.ru_maxrss <= 0) {
    return std::nullopt;
  }
  // Linux counts in KiB, macOS in bytes.
#if defined(__APPLE__)
  return static_cast<uint64_t>(usage.ru_maxrss);
#else
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
#endif
#else
  return std::nullopt;
#endif
}

}  // namespace ptero
