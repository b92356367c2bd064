// SPDX-License-Identifier: BSD-3-Clause
// IEEE 754 half precision on the host, by its bits.
#pragma once

#include <bit>
#include <cstdint>

namespace ptero {

// Exact.
constexpr float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    if (fraction == 0) {
      return std::bit_cast<float>(sign);
    }
    // A subnormal has a leading one further down; single precision holds it as a normal number.
    const int shift = std::countl_zero(fraction) - 21;
    fraction = (fraction << shift) & 0x3ffu;
    exponent = static_cast<uint32_t>(1 - shift);
  } else if (exponent == 31) {
    return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// To the nearest, ties to even; too large a number becomes infinity, as in PyTorch.
constexpr uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u);
  }
  if (magnitude >= 0x477ff000u) {  // 65520 and up round to infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  }
  if (magnitude < 0x33000001u) {  // 2^-25 and below round to 0
    return sign;
  }
  // How many bits of the fraction, with its leading one, go away.
  const uint32_t exponent = magnitude >> 23;
  const uint32_t dropped = exponent >= 113 ? 13 : 126 - exponent;
  const uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t kept = fraction >> dropped;
  const uint32_t rest = fraction & ((1u << dropped) - 1);
  const uint32_t half = 1u << (dropped - 1);
  const uint32_t up = rest > half || (rest == half && (kept & 1u) != 0) ? 1 : 0;
  // The leading one adds 1 to the exponent; a carry out of the fraction does so again, rightly.
  const uint32_t base = exponent >= 113 ? (exponent - 113) << 10 : 0;
  return static_cast<uint16_t>(sign | (base + kept + up));
}

}  // namespace ptero
