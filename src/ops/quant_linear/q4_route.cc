// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <optional>

#include "base/checked.h"
#include "ops/common/adapter_routes.h"
#include "ops/quant_linear/q4_linear.h"

namespace ptero::ops {
namespace {

// The most words that one load may take: rows and groups have to be whole loads.
uint32_t widest_load(const Q4Shape& shape, uint32_t most) {
  uint32_t words = most;
  while (shape.row_bytes / 4 % words != 0 || shape.k / 8 % words != 0 ||
         ceil_div<uint64_t>(shape.group, 8) % words != 0) {
    words /= 2;
  }
  return words;
}

Q4Route column_route(const Q4Shape& shape) {
  return {.kernel = Q4Kernel::column,
          .words = widest_load(shape, 4),
          .rows = shape.m == 1 ? 1u : 4u,
          .columns = 64,
          .threads = shape.m == 1 ? 16u : 8u};
}

Q4Route gemv_route(const Q4Shape& shape, const graph::DeviceFacts& device) {
  // A short matrix is bound by latency: many threads share a row. A tall one reads x for more
  // columns at once, which are many all the same. Measured on an H200 (docs/kernels.md).
  constexpr uint64_t kShort = 4096;
  constexpr uint64_t kLongRow = 4096;
  const bool is_short = shape.n < kShort;
  const bool long_rows = is_short && shape.k >= kLongRow;
  Q4Route route{.kernel = Q4Kernel::gemv, .words = widest_load(shape, long_rows ? 1 : 2)};
  while (route.rows < shape.m && route.rows < 4) {
    route.rows *= 2;
  }
  route.columns = !is_short && shape.m == 1 ? 8 : !is_short || long_rows ? 4 : 2;
  route.threads = is_short ? 128 : 64;
  const uint64_t loads = shape.k / 8 / route.words;
  while (route.threads > 32 &&
         (route.threads / 2 >= loads ||
          route.threads > std::min(device.limits.max_invocations_per_workgroup,
                                   device.limits.max_workgroup_size_x))) {
    route.threads /= 2;
  }
  route.subgroups = route_for(Work::q4_few_rows, device).route == "gemv_subgroup";
  return route;
}

// A tile of the kernel with matrix units, in matrices.
struct MatrixTile {
  uint32_t rows;
  uint32_t columns;
  uint32_t rows_each;  // of a subgroup, which has two columns
  uint32_t split;      // subgroups that share a place
  uint64_t enough;     // so many of these tiles keep a GPU busy
};
// With matrices of 16 x 16: 128 x 128, 64 x 64 and 32 x 64 elements. The fewer elements a tile has,
// the more of them a step of k takes, as a step costs what its barriers and loads wait.
constexpr std::array kMatrixTiles = {MatrixTile{8, 8, 4, 1, 128}, MatrixTile{4, 4, 4, 2, 96},
                                     MatrixTile{2, 4, 2, 2, 0}};

// The largest of these tiles that fits the device, of which there are enough, and which are not
// half empty.
std::optional<Q4Route> matrix_route(const Q4Shape& shape, const graph::DeviceFacts& device,
                                    const gpu::MatrixShape& matrix) {
  const gpu::Limits& limits = device.limits;
  const uint32_t lanes = device.subgroup_max_size;
  for (const MatrixTile& tile : kMatrixTiles) {
    Q4Route route{.kernel = Q4Kernel::matrix,
                  .rows = tile.rows * matrix.m,
                  .columns = tile.columns * matrix.n,
                  .threads = tile.rows / tile.rows_each * (tile.columns / 2) * tile.split * lanes,
                  .matrices = {matrix.m, matrix.n, matrix.k, tile.rows_each, tile.split, lanes}};
    const uint32_t chunks = route.matrices.chunks();
    const uint32_t bytes = (route.rows + route.columns) * chunks * 16;
    const bool fits =
        route.threads <=
            std::min(limits.max_invocations_per_workgroup, limits.max_workgroup_size_x) &&
        bytes <= limits.max_workgroup_storage_size &&
        std::min(route.rows, route.columns) * chunks >= route.threads;  // each stages something
    const uint64_t tiles =
        ceil_div<uint64_t>(shape.m, route.rows) * ceil_div<uint64_t>(shape.n, route.columns);
    const bool suits = tile.enough == 0 || (tiles >= tile.enough && shape.m > route.rows / 2);
    if (fits && suits) {
      route.words = widest_load(shape, std::min(route.columns * chunks / route.threads, 4u));
      return route;
    }
  }
  return std::nullopt;
}

// Tiles of many rows; `most` is the fastest kernel that may be taken.
Q4Route tiled_route(const Q4Shape& shape, const graph::DeviceFacts& device, Q4Kernel most) {
  constexpr uint32_t kWide = 256;
  constexpr uint32_t kTileBytes = 10240;  // of workgroup memory
  const gpu::Limits& limits = device.limits;
  const bool wide = limits.max_invocations_per_workgroup >= kWide &&
                    limits.max_workgroup_size_x >= kWide &&
                    limits.max_workgroup_storage_size >= kTileBytes;
  Q4Route route{.kernel = most, .rows = 64, .columns = 64, .threads = kWide};
  if (!wide) {
    return {.kernel = Q4Kernel::tile, .rows = 32, .columns = 32, .threads = 64};
  }
  if (!shape.may_halve || !device.features.contains(gpu::Feature::shader_f16)) {
    route.kernel = std::min(route.kernel, Q4Kernel::steel);
  }
  if (route.kernel == Q4Kernel::matrix) {
    const gpu::MatrixShape* matrix = half_matrix(device);
    if (const auto matrices =
            matrix != nullptr ? matrix_route(shape, device, *matrix) : std::optional<Q4Route>()) {
      return *matrices;
    }
    route.kernel = Q4Kernel::steel;
  }
  return route;
}

constexpr std::array<std::string_view, 9> kNames = {"any",
                                                    "column",
                                                    "gemv",
                                                    "tile",
                                                    "steel",
                                                    "steel_f16",
                                                    "steel_f16_packed",
                                                    "steel_f16_accumulate",
                                                    "matrix"};

}  // namespace

std::string_view name_of(Q4Kernel kernel) {
  return kNames[static_cast<size_t>(kernel)];
}

Q4Route choose_q4_route(const Q4Shape& shape, const graph::DeviceFacts& device) {
  constexpr uint64_t kFewRows = 16;
  const bool whole_words = shape.k % 8 == 0 && shape.row_bytes % 4 == 0 &&
                           (shape.group % 8 == 0 || shape.group >= shape.k);
  if (!whole_words) {
    return {};
  }
  const auto named = std::find(kNames.begin(), kNames.end(), device.options.q4_gemm);
  if (shape.m > kFewRows && named != kNames.end()) {
    const auto kernel = static_cast<Q4Kernel>(named - kNames.begin());
    if (is_tiled(kernel)) {
      return tiled_route(shape, device, kernel);
    }
    return kernel == Q4Kernel::column ? column_route(shape) : Q4Route{};
  }
  const Work work = shape.m <= kFewRows ? Work::q4_few_rows
                    : shape.half        ? Work::q4_many_half_rows
                                        : Work::q4_many_rows;
  std::string_view route = route_for(work, device).route;
  // Single precision stays so, unless the program or the user asks for less and it is faster.
  if (work == Work::q4_many_rows && shape.may_halve &&
      device.options.enable_f16_gemm.value_or(false) &&
      route_for(Work::q4_many_half_rows, device).route == name_of(Q4Kernel::matrix)) {
    route = name_of(Q4Kernel::matrix);
  }
  if (route == "column") {
    return column_route(shape);
  }
  if (work == Work::q4_few_rows) {
    return gemv_route(shape, device);
  }
  const auto tiled =
      static_cast<Q4Kernel>(std::find(kNames.begin(), kNames.end(), route) - kNames.begin());
  return tiled_route(
      shape, device,
      device.options.enable_f16_accumulate_gemm ? Q4Kernel::steel_f16_accumulate : tiled);
}

}  // namespace ptero::ops
