// SPDX-License-Identifier: BSD-3-Clause
// float16 on the host, for tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ptero::ops {

inline double float_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 0    ? std::ldexp(fraction, -24)
                      : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}

// The nearest, ties to even; beyond the range infinite.
inline uint16_t half_of_float(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::abs(value);
  if (std::isnan(value)) {
    return 0x7e00;
  }
  if (size >= 65520) {
    return sign | 0x7c00;
  }
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // A fraction that rounds up to 2048 carries into the exponent, as it should.
  return static_cast<uint16_t>(sign + (static_cast<uint32_t>(exponent + 14) << 10) + steps);
}

}  // namespace ptero::ops
