// SPDX-License-Identifier: BSD-3-Clause
// Overflow-checked arithmetic for sizes that come from files. An empty optional means the exact
// result does not fit in T; the caller turns it into an error that names the field.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <utility>

namespace ptero {

template <std::unsigned_integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  if (a > std::numeric_limits<T>::max() - b) {
    return std::nullopt;
  }
  return static_cast<T>(a + b);
}

template <std::unsigned_integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  if (b != 0 && a > std::numeric_limits<T>::max() / b) {
    return std::nullopt;
  }
  return static_cast<T>(a * b);
}

// Converts between integer types when the value is representable.
template <std::integral To, std::integral From>
constexpr std::optional<To> checked_cast(From value) {
  if (!std::in_range<To>(value)) {
    return std::nullopt;
  }
  return static_cast<To>(value);
}

// Rounds up to a multiple of `multiple`, which must not be 0.
template <std::unsigned_integral T>
constexpr std::optional<T> checked_round_up(T value, T multiple) {
  const T rest = value % multiple;
  return rest == 0 ? std::optional<T>(value) : checked_add<T>(value, multiple - rest);
}

template <std::unsigned_integral T>
constexpr T ceil_div(T a, T b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace ptero
