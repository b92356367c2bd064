// SPDX-License-Identifier: BSD-3-Clause
#include "convert/q4_groups.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ptero::convert {
namespace {

// Where the element of the largest magnitude lands, in steps. Beyond 8 and 7 it is cut off, which
// costs it and helps all others. One sign reaches -8, the other 7.
constexpr std::array<float, 16> kSteps = {-8.0f, -7.7f, -7.4f, -7.1f, -8.3f, -8.6f, -8.9f, -9.4f,
                                          7.0f,  7.3f,  6.7f,  7.6f,  7.9f,  8.3f,  6.4f,  -6.7f};

// Nibbles as floats, so that the loops below become vector instructions.
struct Steps {
  float xq = 0;
  float qq = 0;
};
Steps round_to_steps(const float* x, float inverse) {
  Steps sums;
  for (uint32_t i = 0; i < kGroupSize; ++i) {
    // Truncation rounds what is never negative.
    const float shifted = std::min(std::max(x[i] * inverse + 8.5f, 0.0f), 15.5f);
    const float q = static_cast<float>(static_cast<int32_t>(shifted)) - 8.0f;
    sums.xq += x[i] * q;
    sums.qq += q * q;
  }
  return sums;
}

}  // namespace

Q4Group nearest_group(std::span<const float, kGroupSize> given) {
  std::array<float, kGroupSize> x;
  float largest = 0;
  for (uint32_t i = 0; i < kGroupSize; ++i) {
    x[i] = std::isfinite(given[i]) ? given[i] : 0.0f;
    largest = std::fabs(x[i]) > std::fabs(largest) ? x[i] : largest;
  }
  Q4Group group;
  group.bytes.fill(0x88);
  // The inverse of what is smaller is infinite.
  if (std::fabs(largest) < 1e-36f) {
    return group;
  }
  // For given nibbles the best scale is xq / qq, and the error is xx - xq * xq / qq.
  float best = -1;
  float best_inverse = 0;
  for (const float steps : kSteps) {
    const float inverse = steps / largest;
    const Steps sums = round_to_steps(x.data(), inverse);
    const float gain = sums.qq > 0 ? sums.xq * (sums.xq / sums.qq) : 0;
    if (gain > best) {
      best = gain;
      best_inverse = inverse;
      group.scale = sums.qq > 0 ? sums.xq / sums.qq : 0;
    }
  }
  for (uint32_t i = 0; i < kGroupSize; i += 2) {
    const auto nibble = [&](uint32_t k) {
      const float shifted = std::min(std::max(x[k] * best_inverse + 8.5f, 0.0f), 15.5f);
      return static_cast<uint32_t>(shifted);
    };
    group.bytes[i / 2] = static_cast<uint8_t>(nibble(i) | nibble(i + 1) << 4);
  }
  return group;
}

}  // namespace ptero::convert
