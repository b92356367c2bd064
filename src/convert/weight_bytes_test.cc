// SPDX-License-Identifier: BSD-3-Clause
#include "convert/weight_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "base/half.h"
#include "convert/q4_groups.h"

namespace ptero::convert {
namespace {

// Counts how many elements were read.
class CountingWeight final : public Weight {
 public:
  CountingWeight(uint64_t rows, uint64_t columns) : Weight("w", rows, columns) {
    std::mt19937 random(1);
    std::normal_distribution<float> spread;
    values_.resize(static_cast<size_t>(elements()));
    std::ranges::generate(values_, [&] { return spread(random); });
  }
  std::string_view type_name() const override { return "test"; }
  uint32_t granule() const override { return 256; }
  Status read(uint64_t first, std::span<float> out) const override {
    PTERO_REJECT_IF(fails, io, "The disk is gone.");
    CHECK(first % granule() == 0);
    CHECK((out.size() % granule() == 0 || first + out.size() == elements()));
    std::copy_n(values_.begin() + static_cast<ptrdiff_t>(first), out.size(), out.begin());
    read_ += out.size();
    return ok_status();
  }
  const std::vector<float>& values() const { return values_; }
  uint64_t read_count() const { return read_; }
  bool fails = false;

 private:
  std::vector<float> values_;
  mutable std::atomic<uint64_t> read_ = 0;
};

std::vector<std::byte> read_in_pieces(const ByteSource& source, size_t piece) {
  std::vector<std::byte> all(static_cast<size_t>(source.size()));
  for (size_t at = 0; at < all.size(); at += piece) {
    const size_t count = std::min(piece, all.size() - at);
    REQUIRE(source.read(at, std::span(all).subspan(at, count)).ok());
  }
  return all;
}

// 137 rows of 12 groups: 1644 groups, more than one chunk; padded to 140 rows.
constexpr uint64_t kRows = 137;
constexpr uint64_t kGroups = 12;

TEST_CASE("nibbles and scales are those of each group, however they are read") {
  const auto weight = std::make_shared<CountingWeight>(kRows, kGroups * kGroupSize);
  for (const unsigned threads : {1u, 3u}) {
    for (const size_t piece : {size_t{7}, size_t{1000}, size_t{1} << 20}) {
      CAPTURE(piece);
      const auto matrix = Q4Matrix::make(weight, threads);
      CHECK(matrix->groups() == kGroups);
      CHECK(matrix->padded_rows() == 140);
      const auto nibbles = read_in_pieces(*matrix->nibbles(), piece);
      const auto linear = read_in_pieces(*matrix->linear_scales(), piece);
      const auto embedding = read_in_pieces(*matrix->embedding_scales(), piece);
      REQUIRE(nibbles.size() == kRows * kGroups * 16);
      REQUIRE(linear.size() == kGroups * 140 * 4);
      REQUIRE(embedding.size() == kRows * kGroups * 4);
      bool equal = true;
      for (size_t row = 0; row < kRows; ++row) {
        for (size_t g = 0; g < kGroups; ++g) {
          const size_t group = row * kGroups + g;
          const Q4Group expected = nearest_group(
              std::span<const float, kGroupSize>(&weight->values()[group * 32], size_t{32}));
          float by_group = 0;
          float by_row = 0;
          std::memcpy(&by_group, &linear[(g * 140 + row) * 4], 4);
          std::memcpy(&by_row, &embedding[group * 4], 4);
          equal = equal && by_group == expected.scale && by_row == expected.scale &&
                  std::memcmp(&nibbles[group * 16], expected.bytes.data(), 16) == 0;
        }
      }
      CHECK(equal);
      // Padding.
      CHECK(std::all_of(linear.begin() + 137 * 4, linear.begin() + 140 * 4,
                        [](std::byte b) { return b == std::byte{0}; }));
    }
  }
}

TEST_CASE("scales that follow their nibbles cost nothing") {
  const auto weight = std::make_shared<CountingWeight>(kRows, kGroups * kGroupSize);
  const auto matrix = Q4Matrix::make(weight, 2);
  const ByteSourcePtr linear = matrix->linear_scales();
  const ByteSourcePtr embedding = matrix->embedding_scales();
  read_in_pieces(*matrix->nibbles(), size_t{1} << 20);
  CHECK(weight->read_count() == weight->elements());
  const auto first = read_in_pieces(*linear, 100);
  read_in_pieces(*embedding, 100);
  CHECK(weight->read_count() == weight->elements());
  // They are gone now, and are found again.
  CHECK(read_in_pieces(*linear, 4096) == first);
  CHECK(weight->read_count() == 2 * weight->elements());
}

TEST_CASE("floats as they are, or halved in size and kept finite") {
  class Extreme final : public Weight {
   public:
    Extreme() : Weight("e", 1, 3) {}
    std::string_view type_name() const override { return "test"; }
    uint32_t granule() const override { return 1; }
    Status read(uint64_t first, std::span<float> out) const override {
      const float values[] = {1e9f, -1e9f, 0.1f};
      std::copy_n(values + first, out.size(), out.begin());
      return ok_status();
    }
  };
  const auto weight = std::make_shared<Extreme>();
  const auto floats = read_in_pieces(*float_bytes(weight, pte::GraphDtype::float32, 2), 3);
  float third = 0;
  std::memcpy(&third, &floats[8], 4);
  CHECK(third == 0.1f);
  const auto halves = read_in_pieces(*float_bytes(weight, pte::GraphDtype::float16, 2), 3);
  REQUIRE(halves.size() == 6);
  std::array<uint16_t, 3> bits;
  std::memcpy(bits.data(), halves.data(), 6);
  CHECK(half_to_float(bits[0]) == 65504);
  CHECK(half_to_float(bits[1]) == -65504);
  CHECK(bits[2] == float_to_half(0.1f));
}

TEST_CASE("an error of the source comes out") {
  const auto weight = std::make_shared<CountingWeight>(kRows, kGroups * kGroupSize);
  weight->fails = true;
  std::vector<std::byte> out(100);
  const Status status = Q4Matrix::make(weight, 4)->nibbles()->read(0, out);
  REQUIRE(!status.ok());
  CHECK(status.error().message() == "The disk is gone.");
}

TEST_CASE("work is done once for each index") {
  for (const unsigned threads : {1u, 4u, 64u}) {
    std::vector<std::atomic<int>> done(100);
    CHECK(parallel_for(100, threads, [&](uint64_t i) {
            ++done[static_cast<size_t>(i)];
            return ok_status();
          }).ok());
    CHECK(std::ranges::all_of(done, [](const std::atomic<int>& n) { return n == 1; }));
  }
}

}  // namespace
}  // namespace ptero::convert
