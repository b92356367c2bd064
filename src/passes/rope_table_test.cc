// SPDX-License-Identifier: BSD-3-Clause
#include "passes/rope_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include "base/half.h"

namespace ptero::passes {
namespace {

using pte::GraphDtype;

constexpr uint32_t kColumns = 32;

double angle(double base, uint32_t column) {
  return std::pow(base, -2.0 * column / (2 * kColumns));
}

// As exporters write them: angles and products in float32.
ByteRange table(uint32_t rows, bool sines, GraphDtype dtype, double base = 10000,
                double scale = 1) {
  std::vector<std::byte> bytes;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t column = 0; column < kColumns; ++column) {
      const float turned = static_cast<float>(row) * static_cast<float>(angle(base, column));
      const auto value = static_cast<float>(scale) * (sines ? std::sin(turned) : std::cos(turned));
      const auto append = [&](auto item) {
        const auto raw = std::as_bytes(std::span(&item, 1));
        bytes.insert(bytes.end(), raw.begin(), raw.end());
      };
      if (dtype == GraphDtype::float16) {
        append(float_to_half(value));
      } else {
        append(value);
      }
    }
  }
  return ByteRange::whole(own_bytes(std::move(bytes)));
}

// Largest distance of an element from what its row and column mean.
double error(const ByteRange& bytes, uint32_t rows, bool sines, GraphDtype dtype, double base,
             double scale) {
  const size_t item = dtype == GraphDtype::float16 ? 2 : 4;
  std::vector<std::byte> raw(size_t{rows} * kColumns * item);
  REQUIRE(bytes.size() == raw.size());
  REQUIRE(bytes.read(0, raw).ok());
  double worst = 0;
  for (size_t i = 0; i < size_t{rows} * kColumns; ++i) {
    double value = 0;
    if (item == 2) {
      uint16_t half = 0;
      std::memcpy(&half, &raw[i * 2], 2);
      value = half_to_float(half);
    } else {
      float single = 0;
      std::memcpy(&single, &raw[i * 4], 4);
      value = single;
    }
    const double turned =
        static_cast<double>(i / kColumns) * angle(base, static_cast<uint32_t>(i % kColumns));
    worst =
        std::max(worst, std::fabs(value - scale * (sines ? std::sin(turned) : std::cos(turned))));
  }
  return worst;
}

TEST_CASE("rope tables: rows beyond the last are those of the same angles") {
  for (const GraphDtype dtype : {GraphDtype::float32, GraphDtype::float16}) {
    for (const double base : {10000.0, 500000.0}) {
      for (const double scale : {1.0, 1.1386}) {
        CAPTURE(base);
        CAPTURE(scale);
        constexpr uint32_t kRows = 512;
        constexpr uint32_t kMore = 4096;
        const ByteRange cosines = table(kRows, false, dtype, base, scale);
        const ByteRange sines = table(kRows, true, dtype, base, scale);
        const auto found = find_rope_angles(cosines, sines, dtype, kRows, kColumns);
        REQUIRE_MESSAGE(found.ok(), found.error().to_string());
        for (uint32_t i = 0; i < kColumns; ++i) {
          CHECK(found->angles[i] == doctest::Approx(angle(base, i)).epsilon(1e-4));
        }
        for (const bool which : {false, true}) {
          const auto longer =
              extend_rope_table(which ? sines : cosines, *found, which, dtype, kMore);
          REQUIRE(longer.ok());
          // The exporter's own table of so many rows has angles that are rounded by 2.4e-4.
          CHECK(error(*longer, kMore, which, dtype, base, scale) <
                (dtype == GraphDtype::float16 ? 8e-4 : 1.2e-4));
        }
      }
    }
  }
}

TEST_CASE("rope tables: the rows of the file stay as they are, in any piece that is read") {
  const ByteRange cosines = table(16, false, GraphDtype::float32);
  const ByteRange sines = table(16, true, GraphDtype::float32);
  const auto found = find_rope_angles(cosines, sines, GraphDtype::float32, 16, kColumns);
  REQUIRE(found.ok());
  const auto longer = extend_rope_table(sines, *found, true, GraphDtype::float32, 24);
  REQUIRE(longer.ok());
  std::vector<std::byte> whole(longer->size());
  REQUIRE(longer->read(0, whole).ok());
  const auto before = sines.view();
  REQUIRE(before);
  CHECK(std::equal(before->begin(), before->end(), whole.begin()));
  for (const size_t offset : {size_t{0}, size_t{2047}, size_t{2050}, whole.size() - 3}) {
    std::vector<std::byte> piece(3);
    REQUIRE(longer->read(offset, piece).ok());
    CHECK(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<ptrdiff_t>(offset)));
  }
}

TEST_CASE("rope tables: what is no table of fixed angles is refused") {
  const ByteRange cosines = table(64, false, GraphDtype::float32);
  const ByteRange sines = table(64, true, GraphDtype::float32);
  const auto refused = [&](const ByteRange& c, const ByteRange& s, uint32_t rows = 64) {
    const auto found = find_rope_angles(c, s, GraphDtype::float32, rows, kColumns);
    return !found.ok() && found.error().code() == ErrorCode::unsupported;
  };
  CHECK_FALSE(refused(cosines, sines));
  CHECK(refused(cosines, cosines));
  CHECK(refused(table(64, false, GraphDtype::float32, 9000), sines));
  std::vector<float> changed(64 * kColumns);
  REQUIRE(sines.read(0, std::as_writable_bytes(std::span(changed))).ok());
  for (const auto& [at, value] : {std::pair<size_t, float>{40 * kColumns + 3, 0.01f},
                                  {63 * kColumns, 3e-3f},
                                  {kColumns, NAN}}) {
    std::vector<float> one = changed;
    one[at] += value;
    CHECK(refused(cosines, ByteRange::whole(borrow_bytes(std::as_bytes(std::span(one))))));
  }
  CHECK(refused(*cosines.subrange(0, kColumns * 4), *sines.subrange(0, kColumns * 4), 1));
}

}  // namespace
}  // namespace ptero::passes
