// SPDX-License-Identifier: BSD-3-Clause
// Look-ups in 4-bit tables are exact: one product, rounded once.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "ops/common/float_bits.h"
#include "ops/common/planned_run.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using pte::GraphDtype;

gpu::Device& shared_device() {
  static gpu::Device device = open_device({.robustness = false});
  return device;
}

struct Table {
  uint32_t rows;
  uint32_t width;
  uint32_t group;
  bool low_first = true;
  bool half = false;
};

void check_table(const Table& table, const std::vector<int32_t>& indices,
                 uint64_t largest_binding = 0) {
  const uint32_t groups = (table.width + table.group - 1) / table.group;
  const uint32_t row_bytes = (table.width + 1) / 2;
  std::vector<uint8_t> weight(table.rows * row_bytes);
  for (size_t i = 0; i < weight.size(); ++i) {
    weight[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  }
  std::vector<float> scales(table.rows * groups);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = static_cast<float>(1 + i * 40503u % 97) / 128;
  }
  std::vector<float> want;
  for (const int32_t index : indices) {
    const auto row = static_cast<uint32_t>(std::clamp<int32_t>(index, 0, table.rows - 1));
    for (uint32_t d = 0; d < table.width; ++d) {
      const uint8_t byte = weight[row * row_bytes + d / 2];
      const int nibble = (d % 2 == 0) == table.low_first ? byte & 15 : byte >> 4;
      want.push_back(static_cast<float>(nibble - 8) * scales[row * groups + d / table.group]);
    }
  }

  PlannedRun run(shared_device(), [&](graph::DeviceFacts& facts) {
    facts.limits.max_storage_binding_size =
        largest_binding != 0 ? largest_binding : facts.limits.max_storage_binding_size;
  });
  const GraphDtype type = table.half ? GraphDtype::float16 : GraphDtype::float32;
  const uint32_t w = run.input({table.rows, row_bytes}, GraphDtype::uint8, weight);
  std::vector<uint16_t> half_scales(scales.size());
  std::transform(scales.begin(), scales.end(), half_scales.begin(), half_of_float);
  const uint32_t s = table.half ? run.input({table.rows, groups}, type, half_scales)
                                : run.input({table.rows, groups}, type, scales);
  const auto count = static_cast<uint32_t>(indices.size());
  const uint32_t i = run.input({1, count}, GraphDtype::int32, indices);
  const uint32_t y = run.output({1, count, table.width}, type);
  const auto bytes =
      run.run("et_vk.embedding_q4gsw.default",
              {w, s, run.value(int64_t{table.group}), i, run.value(table.low_first), y})
          .front();
  if (largest_binding != 0) {
    CHECK(run.kernels().size() > 1);
  }
  if (table.half) {
    const auto bits = values_of<uint16_t>(bytes);
    std::vector<float> got(bits.size());
    std::transform(bits.begin(), bits.end(), got.begin(), float_of_half);
    CHECK(got == want);
  } else {
    CHECK(values_of<float>(bytes) == want);
  }
}

TEST_CASE("embedding_q4gsw: both orders, groups, widths; what lies outside takes the nearer end") {
  const std::vector<int32_t> indices = {3, 0, 22, 22, 7, -1, 23, 2147483647, -2147483647 - 1, 11};
  for (const bool low_first : {true, false}) {
    check_table({.rows = 23, .width = 64, .group = 32, .low_first = low_first}, indices);
    check_table({.rows = 23, .width = 576, .group = 32, .low_first = low_first}, indices);
    check_table({.rows = 23, .width = 96, .group = 96, .low_first = low_first}, indices);
    check_table({.rows = 23, .width = 21, .group = 5, .low_first = low_first}, indices);
  }
  check_table({.rows = 23, .width = 128, .group = 64}, {5});
}

TEST_CASE("embedding_q4gsw: a table beyond the largest binding") {
  std::vector<int32_t> indices;
  for (int32_t i = 0; i < 30; ++i) {
    indices.push_back(i * 137 % 1100 - 10);
  }
  check_table({.rows = 1000, .width = 128, .group = 32}, indices, 16384);
}

TEST_CASE("embedding_q4gsw: float16") {
  if (!shared_device().features().contains(gpu::Feature::shader_f16)) {
    REQUIRE(on_swiftshader());
    return;
  }
  check_table({.rows = 23, .width = 64, .group = 32, .half = true}, {3, 0, 22, 7, 30, 1, 1});
}

}  // namespace
}  // namespace ptero::ops
