// SPDX-License-Identifier: BSD-3-Clause
// Counts what a piece of a test takes from operator new. The operators are replaced in this test
// program (memory_meter_test.cc): unlike RLIMIT_AS that works under AddressSanitizer, whose shadow
// memory alone is terabytes of address space, and unlike mallinfo() or the resident set it counts
// exactly the readers' own allocations, touched or not.
#pragma once

#include <cstddef>

namespace ptero::test {

// One at a time, on one thread.
class MemoryMeter {
 public:
  MemoryMeter();
  // The most bytes in use at once since construction, beyond those in use then.
  size_t peak() const;

 private:
  size_t start_;
};

}  // namespace ptero::test
