// SPDX-License-Identifier: BSD-3-Clause
#include "passes/rope_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "base/composed_source.h"
#include "base/half.h"

namespace ptero::passes {
namespace {

// More say nothing new.
constexpr uint32_t kSampledRows = 2048;

// Between -pi and pi.
double wrapped(double angle) {
  return std::remainder(angle, 2 * std::numbers::pi);
}

Result<std::vector<double>> read_row(const ByteRange& table, pte::GraphDtype dtype, uint32_t row,
                                     uint32_t columns) {
  std::vector<double> values(columns);
  if (dtype == pte::GraphDtype::float16) {
    std::vector<uint16_t> halves(columns);
    PTERO_RETURN_IF_ERROR(table.read(uint64_t{row} * columns * sizeof(uint16_t),
                                     std::as_writable_bytes(std::span(halves))));
    std::transform(halves.begin(), halves.end(), values.begin(), half_to_float);
  } else {
    std::vector<float> floats(columns);
    PTERO_RETURN_IF_ERROR(table.read(uint64_t{row} * columns * sizeof(float),
                                     std::as_writable_bytes(std::span(floats))));
    std::copy(floats.begin(), floats.end(), values.begin());
  }
  return values;
}

struct Row {
  double number = 0;
  std::vector<double> phases;  // by column
  std::vector<double> sizes;
};

class AngleFinder {
 public:
  AngleFinder(const ByteRange& cosines, const ByteRange& sines, pte::GraphDtype dtype,
              uint32_t rows, uint32_t columns)
      : cosines_(cosines), sines_(sines), dtype_(dtype), rows_(rows), columns_(columns) {}

  Result<RopeAngles> find() {
    PTERO_REJECT_IF(rows_ < 2, unsupported, "A table of {} rows does not tell its angles.", rows_);
    PTERO_RETURN_IF_ERROR(read_rows());
    RopeAngles found;
    found.scale = read_[0].sizes.empty() ? 1 : read_[0].sizes[0];
    found.angles.assign(columns_, 0);
    for (uint32_t column = 0; column < columns_; ++column) {
      found.angles[column] = angle_of(column);
      PTERO_RETURN_IF_ERROR(check(column, found.angles[column], found.scale));
    }
    return found;
  }

 private:
  Status read_rows() {
    std::set<uint32_t> numbers = {0, rows_ - 1};
    for (uint64_t row = 1; row < rows_; row *= 2) {
      numbers.insert(static_cast<uint32_t>(row));
    }
    const uint32_t step = std::max(1u, rows_ / kSampledRows);
    for (uint64_t row = 0; row < rows_; row += step) {
      numbers.insert(static_cast<uint32_t>(row));
    }
    for (const uint32_t number : numbers) {
      PTERO_ASSIGN_OR_RETURN(const std::vector<double> cosines,
                             read_row(cosines_, dtype_, number, columns_));
      PTERO_ASSIGN_OR_RETURN(const std::vector<double> sines,
                             read_row(sines_, dtype_, number, columns_));
      Row& row = read_.emplace_back();
      row.number = number;
      for (uint32_t i = 0; i < columns_; ++i) {
        row.phases.push_back(std::atan2(sines[i], cosines[i]));
        row.sizes.push_back(std::hypot(sines[i], cosines[i]));
      }
    }
    return ok_status();
  }

  // A row tells its angle but for whole turns; what the rows before it say is near enough to count
  // these, as long as a row is at most about twice as far as the last one.
  double angle_of(uint32_t column) const {
    double angle = 0;
    double settled = 0;  // the row that `angle` is from
    for (const Row& row : read_) {
      if (row.number >= std::max(1.0, 2 * settled)) {
        angle += wrapped(row.phases[column] - row.number * angle) / row.number;
        settled = row.number;
      }
    }
    double along = 0;
    double squares = 0;
    for (const Row& row : read_) {
      along += row.number * wrapped(row.phases[column] - row.number * angle);
      squares += row.number * row.number;
    }
    return angle + along / squares;
  }

  Status check(uint32_t column, double angle, double scale) const {
    // Tables may have been rounded to half precision on their way, and large angles to single
    // precision before their cosine was taken.
    constexpr double kRounded = 0x1p-10;
    for (const Row& row : read_) {
      const double turned = std::fabs(row.number * angle);
      const double error = std::fabs(wrapped(row.phases[column] - row.number * angle));
      PTERO_REJECT_IF(!(error <= kRounded + turned * 0x1p-22) ||
                          !(std::fabs(row.sizes[column] / scale - 1) <= 2 * kRounded),
                      unsupported,
                      "Row {} of a table of rotary angles does not continue the rows before it, so "
                      "that further ones cannot be computed.",
                      row.number);
    }
    return ok_status();
  }

  const ByteRange& cosines_;
  const ByteRange& sines_;
  pte::GraphDtype dtype_;
  uint32_t rows_;
  uint32_t columns_;
  std::vector<Row> read_;  // rising
};

}  // namespace

Result<RopeAngles> find_rope_angles(const ByteRange& cosines, const ByteRange& sines,
                                    pte::GraphDtype dtype, uint32_t rows, uint32_t columns) {
  return AngleFinder(cosines, sines, dtype, rows, columns).find();
}

Result<ByteRange> extend_rope_table(const ByteRange& table, const RopeAngles& angles, bool sines,
                                    pte::GraphDtype dtype, uint32_t rows) {
  const uint64_t item = *pte::element_size(dtype);
  const uint64_t columns = angles.angles.size();
  const uint64_t size = rows * columns * item;
  const uint64_t first = table.size() / item;  // element
  ByteSourcePtr further = generate_bytes(
      size - table.size(),
      [angles, sines, item, columns, first](uint64_t offset, std::span<std::byte> out) {
        uint64_t at = offset;
        while (at < offset + out.size()) {
          const uint64_t element = first + at / item;
          const double turned =
              static_cast<double>(element / columns) * angles.angles[element % columns];
          const auto value =
              static_cast<float>(angles.scale * (sines ? std::sin(turned) : std::cos(turned)));
          const uint32_t bits = item == 2 ? float_to_half(value) : std::bit_cast<uint32_t>(value);
          // `out` may begin or end within an element.
          for (uint64_t byte = at % item; byte < item && at < offset + out.size(); ++byte) {
            out[at++ - offset] = static_cast<std::byte>(bits >> (8 * byte));
          }
        }
        return ok_status();
      },
      "further rows");
  PTERO_ASSIGN_OR_RETURN(
      ByteSourcePtr whole,
      compose_bytes(size, {{0, table}, {table.size(), ByteRange::whole(std::move(further))}},
                    "extended table"));
  return ByteRange::whole(std::move(whole));
}

}  // namespace ptero::passes
