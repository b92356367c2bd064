// SPDX-License-Identifier: BSD-3-Clause
// y = x times a matrix of 4-bit weights with a scale for each group of a row, plus a bias: what the
// 4-bit linear operators have in common, and which kernel makes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "graph/op_call.h"

namespace ptero::ops {

// Two weights a byte, minus 8, times the scale of their group.
struct Q4Linear {
  graph::TensorRef x;                        // [..., K]
  graph::TensorRef weight;                   // bytes [N, at least K / 2]
  graph::TensorRef scales;                   // [groups, at least N], or [at least N] for one group
  std::optional<graph::TensorRef> bias;      // at least N elements
  graph::TensorRef y;                        // [..., N]
  std::optional<graph::BufferRef> x_values;  // float32, to take in place of what x holds
  int64_t group_size = 0;
  bool swapped = false;    // the first weight of a byte in its high half
  bool may_halve = false;  // see Q4Shape

  // Of the operator that passes make (fused_q4.cc).
  std::optional<graph::TensorRef> residual;  // added to y, of its shape; not with a bias
  std::optional<graph::TensorRef> norm;      // K elements: x counts as its rms_norm with them
  double eps = 0;
  // The first half of the weight's rows are gates of the second: y is [..., N / 2]. Without bias
  // and residual.
  bool gated = false;
};

enum class Q4Kernel : uint8_t {
  any,     // every shape, one element at a time
  column,  // few, independent invocations: adapters that run on a CPU
  gemv,    // few rows of x, a workgroup a column: decoding
  tile,    // many rows of x: prefill
  // The same with 256 threads, which not every device has.
  steel,
  steel_f16,             // multiplies in f16
  steel_f16_packed,      // the same results, the weight taken apart by words
  steel_f16_accumulate,  // adds in f16, too: only where the user asks for it
  matrix,                // multiplies in f16 by matrix units, adds in f32
};

// The name of a kernel as the option q4_gemm has it.
std::string_view name_of(Q4Kernel kernel);

// Whether it makes tiles of many rows.
constexpr bool is_tiled(Q4Kernel kernel) {
  return kernel >= Q4Kernel::tile;
}

struct Q4Shape {
  uint64_t m = 0;
  uint64_t n = 0;
  uint64_t k = 0;
  uint64_t group = 0;      // elements, at most k
  uint64_t row_bytes = 0;  // of the weight
  bool may_halve = false;  // products in f16 may be asked for
  bool half = false;       // x is of half precision, so they lose nothing that counts
};

// How the kernel with matrix units divides its tile.
struct Q4Matrices {
  uint32_t m = 0;  // of one matrix, as the adapter has it
  uint32_t n = 0;
  uint32_t k = 0;
  uint32_t rows = 0;   // of matrices a subgroup, each of two
  uint32_t split = 0;  // subgroups that share a place, each with its part of k
  uint32_t lanes = 0;  // of a subgroup

  uint32_t chunks() const { return 4 * split; }  // of eight elements of k that a step stages

  bool operator==(const Q4Matrices&) const = default;
};

struct Q4Route {
  Q4Kernel kernel = Q4Kernel::any;
  uint32_t words = 1;     // of eight weights a load
  uint32_t rows = 1;      // of x that a thread (column) or workgroup (gemv, tile) takes
  uint32_t columns = 1;   // the same for rows of the weight
  uint32_t threads = 64;  // a workgroup
  bool subgroups = false;
  Q4Matrices matrices{};

  // What the kernel does beside the product; the rest takes kernels of its own.
  bool gates() const {
    return kernel == Q4Kernel::gemv || kernel == Q4Kernel::column || kernel == Q4Kernel::matrix;
  }
  bool normalises() const { return kernel == Q4Kernel::gemv; }

  bool operator==(const Q4Route&) const = default;
};

// Which kernel makes a product of this shape on such a device: by default, or what the options ask
// for when it serves.
Q4Route choose_q4_route(const Q4Shape& shape, const graph::DeviceFacts& device);

// Checks that the tensors fit together and gives y its shape.
Result<Q4Shape> check_q4_linear(graph::OpCall& op, Q4Linear& linear);

// The same, and records the dispatches. Weights and scales that are too large for a binding are
// taken in blocks of N and of K.
Status dispatch_q4_linear(graph::OpCall& op, Q4Linear linear);

}  // namespace ptero::ops
