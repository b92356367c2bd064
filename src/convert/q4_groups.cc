// SPDX-License-Identifier: BSD-3-Clause
#include "convert/q4_groups.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ptero::convert {
namespace {

// Where the element of the largest magnitude lands, in steps. Beyond 8 and 7 it is cut off, which
// costs it and helps all others. One sign reaches -8, the other 7.
// With these ten the squared error of normally distributed numbers is half a percent above that of
// the best of a thousand.
constexpr std::array<float, 10> kSteps = {-8.0f, -7.6f, -7.2f, -8.4f, -8.8f,
                                          7.0f,  7.4f,  6.6f,  7.8f,  8.2f};

// Truncation rounds what is never negative.
int32_t nibble_of(float x, float inverse) {
  const float shifted = x * inverse + 8.5f;
  const float low = shifted > 0.0f ? shifted : 0.0f;
  return static_cast<int32_t>(low < 15.5f ? low : 15.5f);
}

// What the squared error of nibbles depends on: the best scale for them is xq / qq, and the error
// with it is xx - xq * xq / qq. Sums in lanes, so that the loops become vector instructions.
struct Sums {
  float xq = 0;
  float qq = 0;
};
Sums sums_of(const std::array<float, kGroupSize>& x, float inverse) {
  constexpr size_t kLanes = 8;
  std::array<float, kGroupSize> q;
  for (size_t i = 0; i < kGroupSize; ++i) {
    q[i] = static_cast<float>(nibble_of(x[i], inverse)) - 8.0f;
  }
  std::array<float, kLanes> xq = {};
  std::array<float, kLanes> qq = {};
  for (size_t i = 0; i < kGroupSize; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      xq[lane] += x[i + lane] * q[i + lane];
      qq[lane] += q[i + lane] * q[i + lane];
    }
  }
  Sums sums;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    sums.xq += xq[lane];
    sums.qq += qq[lane];
  }
  return sums;
}

}  // namespace

Q4Group nearest_group(std::span<const float, kGroupSize> given) {
  std::array<float, kGroupSize> x;
  float largest = 0;
  for (size_t i = 0; i < kGroupSize; ++i) {
    x[i] = std::isfinite(given[i]) ? given[i] : 0.0f;
    largest = std::fabs(x[i]) > std::fabs(largest) ? x[i] : largest;
  }
  Q4Group group;
  group.bytes.fill(0x88);
  if (largest == 0) {
    return group;
  }
  // Brings the largest near 1, so that no square is too large or too small.
  int exponent = 0;
  (void)std::frexp(largest, &exponent);
  exponent = std::clamp(exponent, -120, 126);
  const float factor = std::ldexp(1.0f, -exponent);
  largest *= factor;
  for (float& value : x) {
    value *= factor;
  }
  float best = -1;
  float best_inverse = 0;
  for (const float steps : kSteps) {
    const float inverse = steps / largest;
    const Sums sums = sums_of(x, inverse);
    const float gain = sums.xq * (sums.xq / sums.qq);
    if (gain > best) {
      best = gain;
      best_inverse = inverse;
      group.scale = std::ldexp(sums.xq / sums.qq, exponent);
    }
  }
  for (size_t i = 0; i < kGroupSize; i += 2) {
    group.bytes[i / 2] = static_cast<uint8_t>(nibble_of(x[i], best_inverse) |
                                              nibble_of(x[i + 1], best_inverse) << 4);
  }
  return group;
}

}  // namespace ptero::convert
