// SPDX-License-Identifier: BSD-3-Clause
#include "convert/q4_groups.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <doctest/doctest.h>

namespace ptero::convert {
namespace {

using Values = std::array<float, kGroupSize>;

Values values_of(const Q4Group& group) {
  Values out;
  for (size_t i = 0; i < kGroupSize; ++i) {
    const int nibble = group.bytes[i / 2] >> (i % 2 * 4) & 15;
    out[i] = group.scale * static_cast<float>(nibble - 8);
  }
  return out;
}

double squared_error(const Values& x, const Values& y) {
  double sum = 0;
  for (size_t i = 0; i < kGroupSize; ++i) {
    sum += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
  }
  return sum;
}

// The scale that brings the largest magnitude to -8, as Q4_0 is usually made.
Values usual(const Values& x) {
  float largest = 0;
  for (const float value : x) {
    largest = std::fabs(value) > std::fabs(largest) ? value : largest;
  }
  Values out;
  const float scale = largest / -8;
  for (size_t i = 0; i < kGroupSize; ++i) {
    out[i] = scale * std::min(7.0f, std::round(x[i] / scale));
  }
  return out;
}

TEST_CASE("what is in 4 bits already stays as it is") {
  std::mt19937 random(3);
  for (const float scale : {0.5f, -0.25f, 3e-5f, 1e20f}) {
    for (const int end : {-8, 7}) {
      Values x;
      for (float& value : x) {
        value = scale * static_cast<float>(static_cast<int>(random() % 15) - 7);
      }
      x[5] = scale * static_cast<float>(end);
      const Values y = values_of(nearest_group(x));
      for (size_t i = 0; i < kGroupSize; ++i) {
        CHECK(y[i] == doctest::Approx(x[i]).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("the even element is in the low nibble") {
  Values x = {};
  x[0] = -8;
  x[1] = 7;
  x[31] = 3;
  const Q4Group group = nearest_group(x);
  CHECK(group.scale == doctest::Approx(1.0f));
  CHECK(group.bytes[0] == 0xf0);
  CHECK(group.bytes[1] == 0x88);
  CHECK(group.bytes[15] == 0xb8);
}

TEST_CASE("the search is better than the usual scale") {
  std::mt19937 random(5);
  std::normal_distribution<float> spread(0, 0.02f);
  double ours = 0;
  double theirs = 0;
  for (int round = 0; round < 500; ++round) {
    Values x;
    for (float& value : x) {
      value = spread(random);
    }
    const double found = squared_error(x, values_of(nearest_group(x)));
    const double plain = squared_error(x, usual(x));
    CHECK(found <= plain * (1 + 1e-5));
    ours += found;
    theirs += plain;
  }
  CHECK(ours < 0.92 * theirs);
}

TEST_CASE("zeros, extremes and numbers that are none") {
  Values x = {};
  CHECK(values_of(nearest_group(x)) == x);
  x.fill(1e-40f);
  CHECK(squared_error(x, values_of(nearest_group(x))) < 1e-70);
  x.fill(3e38f);
  CHECK(values_of(nearest_group(x))[9] == doctest::Approx(3e38f).epsilon(1e-5));
  x.fill(1);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = std::numeric_limits<float>::infinity();
  x[6] = -std::numeric_limits<float>::infinity();
  const Values y = values_of(nearest_group(x));
  CHECK(y[2] == doctest::Approx(1.0f));
  CHECK(y[3] == 0);
  CHECK(y[4] == 0);
  CHECK(y[6] == 0);
}

}  // namespace
}  // namespace ptero::convert
