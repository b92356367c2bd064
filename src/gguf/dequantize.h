// SPDX-License-Identifier: BSD-3-Clause
// Blocks of GGUF tensors -> floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "gguf/gguf.h"

namespace ptero::gguf {

// Whether dequantize() knows the type: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K.
bool can_dequantize(TensorType type);

// `blocks` are whole blocks of `type` and `out` is as long as their elements. Code unsupported for
// a type that can_dequantize() refuses, internal for sizes that do not match.
Status dequantize(TensorType type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace ptero::gguf
