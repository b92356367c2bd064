// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/adapter_routes.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ptero::ops {
namespace {

using gpu::Feature;

constexpr std::string_view kCpu = "a CPU pays for barriers, workgroup memory and sums over threads";
constexpr std::string_view kSubgroup = "subgroups add without workgroup memory";
constexpr std::string_view kPlain = "it needs nothing";
constexpr std::string_view kTilesOf64 = "tiles of 64 x 64 by 256 threads";
constexpr std::string_view kTileHalf = "tiles of 64 x 64 by 256 threads, products in f16";
constexpr std::string_view kMatrixUnits = "matrix units, sums in f32";
constexpr std::string_view kQueryTile = "keys are read once for a tile of queries";
constexpr std::string_view kSmallTile = "workgroups of 256 threads do not fit";

constexpr std::array kRoutes = {
    AdapterRoute{Work::q4_few_rows, "column", true, {}, 0, kCpu},
    AdapterRoute{Work::q4_few_rows, "gemv_subgroup", {}, {Feature::subgroups}, 0, kSubgroup},
    AdapterRoute{Work::q4_few_rows, "gemv", {}, {}, 0, "sums over threads in workgroup memory"},
    AdapterRoute{Work::q4_many_rows, "column", true, {}, 0, kCpu},
    AdapterRoute{Work::q4_many_rows, "steel", {}, {}, 256, kTilesOf64},
    AdapterRoute{Work::q4_many_rows, "tile", {}, {}, 0, kSmallTile},
    AdapterRoute{Work::q4_many_half_rows, "column", true, {}, 0, kCpu},
    AdapterRoute{Work::q4_many_half_rows, "matrix", {}, kMatrixFeatures, 256, kMatrixUnits},
    AdapterRoute{
        Work::q4_many_half_rows, "steel_f16_packed", {}, {Feature::shader_f16}, 256, kTileHalf},
    AdapterRoute{Work::q4_many_half_rows, "steel", {}, {}, 256, kTilesOf64},
    AdapterRoute{Work::q4_many_half_rows, "tile", {}, {}, 0, kSmallTile},
    AdapterRoute{
        Work::q8_products, "packed", {}, {Feature::packed_dot}, 0, "four products an instruction"},
    AdapterRoute{Work::q8_products, "plain", {}, {}, 0, kPlain},
    AdapterRoute{Work::attention_few, "rows", true, {}, 0, kCpu},
    AdapterRoute{Work::attention_few, "split", {}, {}, 0, "keys split over workgroups fill a GPU"},
    AdapterRoute{Work::attention_many, "rows", true, {}, 0, kCpu},
    AdapterRoute{Work::attention_many, "tiles", {}, {}, 0, kQueryTile},
    AdapterRoute{Work::attention_many_half, "rows", true, {}, 0, kCpu},
    AdapterRoute{Work::attention_many_half, "matrix", {}, kMatrixFeatures, 0, kMatrixUnits},
    AdapterRoute{Work::attention_many_half, "tiles", {}, {}, 0, kQueryTile},
    AdapterRoute{Work::row_sums, "thread", true, {}, 0, kCpu},
    AdapterRoute{Work::row_sums, "subgroup", {}, {Feature::subgroups}, 0, kSubgroup},
    AdapterRoute{Work::row_sums, "workgroup", {}, {}, 0, "sums over threads in workgroup memory"},
};

constexpr std::array<std::string_view, kWorkCount> kNames = {
    "4-bit linear, 1 to 16 rows",     "4-bit linear, more rows",
    "4-bit linear, more rows of f16", "products of int8",
    "attention, few queries",         "attention, many queries",
    "attention, many queries in f16", "sums over rows",
};

}  // namespace

std::string_view name_of(Work work) {
  return kNames[static_cast<size_t>(work)];
}

std::span<const AdapterRoute> adapter_routes() {
  return kRoutes;
}

const AdapterRoute& route_for(Work work, const graph::DeviceFacts& device) {
  const uint32_t threads =
      std::min(device.limits.max_invocations_per_workgroup, device.limits.max_workgroup_size_x);
  // The last of each work asks for nothing.
  return *std::find_if(kRoutes.begin(), kRoutes.end(), [&](const AdapterRoute& route) {
    return route.work == work &&
           route.software.value_or(device.is_software) == device.is_software &&
           device.features.contains_all(route.needs) && route.threads <= threads &&
           (!route.needs.contains(Feature::subgroup_matrix) || half_matrix(device) != nullptr);
  });
}

const gpu::MatrixShape* half_matrix(const graph::DeviceFacts& device) {
  constexpr uint32_t kLargest = 16;  // side, of those that kernels have tiles for
  constexpr uint32_t kMostLanes = 64;
  const bool fixed = device.subgroup_min_size == device.subgroup_max_size &&
                     std::has_single_bit(device.subgroup_max_size) &&
                     device.subgroup_max_size <= kMostLanes;
  if (!fixed || !device.features.contains_all(kMatrixFeatures)) {
    return nullptr;
  }
  const gpu::MatrixShape* largest = nullptr;
  const auto fits = [](uint32_t side, uint32_t least) {
    return std::has_single_bit(side) && side >= least && side <= kLargest;
  };
  for (const gpu::MatrixShape& shape : device.matrix_shapes) {
    if (shape.input == gpu::MatrixType::f16 && shape.result == gpu::MatrixType::f32 &&
        fits(shape.m, 4) && fits(shape.n, 4) && fits(shape.k, 8) &&
        (largest == nullptr ||
         shape.m * shape.n * shape.k > largest->m * largest->n * largest->k)) {
      largest = &shape;
    }
  }
  return largest;
}

}  // namespace ptero::ops
