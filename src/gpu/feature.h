// SPDX-License-Identifier: BSD-3-Clause
// The optional fast paths of an adapter, each with an off-switch. Names are those users type and
// read ("--disable subgroup-matrix", "ptero devices").
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "base/result.h"

namespace ptero::gpu {

enum class Feature : std::uint8_t {
  shader_f16,       // f16 in shaders and in storage buffers
  subgroups,        // subgroup built-ins; kernels are right for sizes 4, 8, 32 and 64
  subgroup_matrix,  // Dawn's experimental matrix units
  packed_dot,       // dot4I8Packed and its relatives
  timestamps,       // timestamp queries for the profiler
  immediates,       // per-dispatch parameters without a buffer
};
inline constexpr int kFeatureCount = 6;

// "shader-f16", "subgroups", "subgroup-matrix", "packed-dot", "timestamps", "immediates".
std::string_view feature_name(Feature feature);

// The inverse of feature_name(); invalid_argument otherwise, with the known names in the sentence.
Result<Feature> parse_feature(std::string_view name);

// A set of features; a plain value. Iteration is in the order of the enumeration.
class FeatureSet {
 public:
  class Iterator {
   public:
    using value_type = Feature;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using reference = Feature;
    using pointer = void;

    constexpr Iterator() = default;
    constexpr Feature operator*() const { return static_cast<Feature>(index_); }
    constexpr Iterator& operator++() {
      ++index_;
      skip_absent();
      return *this;
    }
    constexpr Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    friend class FeatureSet;
    constexpr Iterator(std::uint32_t bits, int index) : bits_(bits), index_(index) {
      skip_absent();
    }
    constexpr void skip_absent() {
      while (index_ < kFeatureCount && (bits_ >> index_ & 1u) == 0) {
        ++index_;
      }
    }
    std::uint32_t bits_ = 0;
    int index_ = kFeatureCount;
  };

  constexpr FeatureSet() = default;
  constexpr FeatureSet(std::initializer_list<Feature> features) {
    for (const Feature feature : features) {
      insert(feature);
    }
  }
  static constexpr FeatureSet all() {
    FeatureSet set;
    set.bits_ = (1u << kFeatureCount) - 1;
    return set;
  }

  constexpr bool contains(Feature feature) const { return (bits_ & bit(feature)) != 0; }
  constexpr bool contains_all(FeatureSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return std::popcount(bits_); }
  constexpr void insert(Feature feature) { bits_ |= bit(feature); }
  constexpr void erase(Feature feature) { bits_ &= ~bit(feature); }
  // A stable number for hashing; bit i is the i-th enumerator.
  constexpr std::uint32_t bits() const { return bits_; }

  friend constexpr FeatureSet operator|(FeatureSet a, FeatureSet b) { return a |= b; }
  constexpr FeatureSet& operator|=(FeatureSet other) {
    bits_ |= other.bits_;
    return *this;
  }
  friend constexpr FeatureSet operator&(FeatureSet a, FeatureSet b) {
    a.bits_ &= b.bits_;
    return a;
  }
  constexpr bool operator==(const FeatureSet&) const = default;

  constexpr Iterator begin() const { return Iterator(bits_, 0); }
  constexpr Iterator end() const { return Iterator(bits_, kFeatureCount); }

 private:
  static constexpr std::uint32_t bit(Feature feature) {
    return 1u << static_cast<std::uint32_t>(feature);
  }
  std::uint32_t bits_ = 0;
};

}  // namespace ptero::gpu
