// SPDX-License-Identifier: BSD-3-Clause
// Byte sources that are made, not stored: a file that is put together from parts, and bytes that a
// callback produces. With them a writer describes a file of any size without holding it, a reader
// can read what was never on disk, and saving it is one way of using it (file_output.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"

namespace ptero {

struct PlacedBytes {
  uint64_t offset = 0;  // in the composed source
  ByteRange bytes;
};

// A source of `size` bytes that reads as its parts; what lies between them reads as zero. Parts
// come in rising order. Code internal when they overlap, go backwards or leave the source.
// A view() succeeds when it lies in one part that has a view.
Result<ByteSourcePtr> compose_bytes(uint64_t size, std::vector<PlacedBytes> parts,
                                    std::string name);

// Fills `out` with the bytes from `offset` on.
using ByteGenerator = std::function<Status(uint64_t offset, std::span<std::byte> out)>;

// A source whose bytes are produced when they are read. Calls never overlap in time, stay inside
// `size`, and write_file() reads every byte once in rising order, in pieces of at most
// kCopyPieceSize; other readers come as they please, so equal ranges must give equal bytes.
ByteSourcePtr generate_bytes(uint64_t size, ByteGenerator generator, std::string name = "memory");

// How much copying code reads at a time.
inline constexpr size_t kCopyPieceSize = size_t{4} << 20;

// Calls `sink` with the bytes of `source` in order, piece by piece, without a copy where the
// source can be looked at. Stops at the first error of either side.
Status copy_bytes(const ByteSource& source,
                  const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace ptero
