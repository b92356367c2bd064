// SPDX-License-Identifier: BSD-3-Clause
// How much of everything a reader accepts. Model files come from strangers: each limit is far
// above what real models need and far below what would make loading slow or large. A count that is
// bounded by the file's own size (one stored element per counted thing) still has a limit where
// our copy is bigger than the stored element.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptero::pte {

// Dimensions of a tensor. ExecuTorch's portable kernels stop at 16, the WebGPU kernels at 8.
inline constexpr size_t kMaxRank = 16;

// FlatBuffers offsets are signed 32-bit numbers; its verifier takes buffers below 2^31 - 1.
inline constexpr uint64_t kMaxFlatbufferSize = (uint64_t{1} << 31) - 2;

// A flatbuffer of a source without memory to look at is copied. The largest one seen (487 named
// weights, 10 methods) has 80 KB; inline weights belong in segments or in a mapped file.
inline constexpr uint64_t kMaxCopiedFlatbufferSize = uint64_t{64} << 20;

// For the FlatBuffers verifier: real nesting ends at 8 (program, plan, chain, stacktrace, frame
// and the vectors between).
inline constexpr uint32_t kMaxFlatbufferDepth = 24;

// Tables in one flatbuffer. A table costs at least 4 bytes of file and up to 200 of ours.
inline constexpr uint32_t kMaxFlatbufferTables = 1'000'000;

// Memory that one flatbuffer may become once decoded, in bytes of strings, lists and structs. The
// tests hold SmolLM2 (30 layers, 487 constants) below a tenth of it, and a 70B model has fewer than
// three times as many layers.
inline constexpr uint64_t kMaxDecodedBytes = uint64_t{32} << 20;

// Methods of a program. Language models have about ten, most of them constants.
inline constexpr size_t kMaxPlans = 4096;

// Keys, methods, operators and backends are found by name; SHA-256 keys have 64 bytes and fully
// qualified names a few hundred.
inline constexpr uint32_t kMaxNameSize = 4096;

// Bytes of one tensor or planned arena: above any host's memory, and small enough that the sum
// over a million of them still fits in 64 bits.
inline constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 40;

}  // namespace ptero::pte
