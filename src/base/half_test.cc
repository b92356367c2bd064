// SPDX-License-Identifier: BSD-3-Clause
#include "base/half.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace ptero {
namespace {

// The value of a half by its definition.
double by_definition(uint16_t half) {
  const double sign = (half & 0x8000u) != 0 ? -1 : 1;
  const int exponent = (half >> 10) & 0x1f;
  const double fraction = half & 0x3ff;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST_CASE("half: every value, there and back") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double want = by_definition(half);
    const float got = half_to_float(half);
    if (std::isnan(want)) {
      REQUIRE(std::isnan(got));
      REQUIRE(std::isnan(half_to_float(float_to_half(got))));
    } else {
      REQUIRE(static_cast<double>(got) == want);
      REQUIRE(std::signbit(got) == std::signbit(want));
      REQUIRE(float_to_half(got) == half);
    }
  }
}

TEST_CASE("half: numbers between two halves go to the nearest, ties to even") {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = half_to_float(static_cast<uint16_t>(bits));
    const float high = half_to_float(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: a half has 11 bits
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    REQUIRE(float_to_half(middle) == even);
    REQUIRE(float_to_half(std::nextafter(middle, low)) == bits);
    REQUIRE(float_to_half(std::nextafter(middle, high)) == bits + 1);
    REQUIRE(float_to_half(-std::nextafter(middle, high)) == (bits + 1) + 0x8000);
  }
  CHECK(float_to_half(65519.996f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(-1e30f) == 0xfc00);
  CHECK(float_to_half(1e-40f) == 0);
}

}  // namespace
}  // namespace ptero
