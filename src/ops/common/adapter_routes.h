// SPDX-License-Identifier: BSD-3-Clause
// Which kernels an adapter gets for the work where that matters, as one table. A shape may still
// turn a route down; what that falls back to is the operator's to say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "graph/op_call.h"

namespace ptero::ops {

enum class Work : uint8_t {
  q4_few_rows,        // 4-bit linear layers with up to 16 rows
  q4_many_rows,       // with more of them
  q4_many_half_rows,  // the same with x in f16
  q8_products,        // products of int8
  attention_few,      // attention of few queries
  attention_many,
  attention_many_half,  // the same where products in f16 lose nothing that counts
  row_sums,             // sums over the elements of rows: norms, softmax, reductions
};
inline constexpr size_t kWorkCount = 8;
std::string_view name_of(Work work);  // in words

// A row of the table: the first of a work whose conditions hold is taken.
struct AdapterRoute {
  Work work;
  std::string_view route;        // a name that the operator knows
  std::optional<bool> software;  // only there, or only elsewhere
  gpu::FeatureSet needs;
  uint32_t threads;  // that a workgroup must be able to have
  std::string_view why;
};
std::span<const AdapterRoute> adapter_routes();

const AdapterRoute& route_for(Work work, const graph::DeviceFacts& device);

// What a kernel with matrix units needs.
inline constexpr gpu::FeatureSet kMatrixFeatures = {
    gpu::Feature::shader_f16, gpu::Feature::subgroups, gpu::Feature::subgroup_matrix};

// What a subgroup multiplies at once, f16 times f16 with sums in f32; null on devices that do not,
// and where the lanes of a subgroup vary. All routes that need matrices need these.
const gpu::MatrixShape* half_matrix(const graph::DeviceFacts& device);

}  // namespace ptero::ops
