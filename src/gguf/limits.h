// SPDX-License-Identifier: BSD-3-Clause
// How much of everything the reader accepts: far above what real files need, far below what would
// make reading slow or large.
#pragma once

#include <cstdint>

namespace ptero::gguf {

// The format's own limit.
inline constexpr uint64_t kMaxKeySize = 65535;

// Files have a few dozen keys.
inline constexpr uint64_t kMaxKeys = 65536;

// The largest models have some thousand tensors.
inline constexpr uint64_t kMaxTensors = 65536;

// The format says 64; some writers do not care.
inline constexpr uint64_t kMaxTensorNameSize = 255;

inline constexpr uint32_t kMaxRank = 4;

// A string outside of arrays is copied. Chat templates have some kilobytes.
inline constexpr uint64_t kMaxStringSize = uint64_t{16} << 20;

// A token, a merge. What is longer would be copied again and again on the way to a tokenizer.
inline constexpr uint64_t kMaxItemSize = uint64_t{1} << 20;

// All metadata: its arrays stay in the file, but their strings are looked at one by one.
inline constexpr uint64_t kMaxArrayItems = uint64_t{1} << 26;

inline constexpr uint64_t kMinAlignment = 8;
inline constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;

}  // namespace ptero::gguf
