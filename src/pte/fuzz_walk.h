// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz programs share: input in a block of its own, so that AddressSanitizer sees a read
// past its end, and promises of the readers that end the program when they are broken.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_source.h"

namespace ptero::pte {

inline void fuzz_require(bool promise) {
  if (!promise) {
    __builtin_trap();
  }
}

inline ByteRange fuzz_input(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  return ByteRange::whole(own_bytes(std::vector<std::byte>(bytes, bytes + size), "fuzz input"));
}

// Reads the first and last byte of what a reader promised.
inline void fuzz_touch(const ByteRange& range) {
  std::byte byte;
  if (!range.empty()) {
    fuzz_require(range.read(0, {&byte, 1}).ok());
    fuzz_require(range.read(range.size() - 1, {&byte, 1}).ok());
  }
}

}  // namespace ptero::pte
