// SPDX-License-Identifier: BSD-3-Clause
#include "ops/norm/rms_norm.h"

#include <algorithm>

#include "base/checked.h"
#include "ops/common/adapter_routes.h"
#include "ops/norm/rms_norm.wgsl.h"

namespace ptero::ops {

namespace {

// The threads of one row in a workgroup of its own, or several rows of one thread each.
RowSplit threads_of_row(const graph::DeviceFacts& device, uint64_t rows, uint64_t loads) {
  if (route_for(Work::row_sums, device).route == "thread") {
    // A row a thread needs no sums over threads. One row is shared by as many threads as run in
    // step, which need no barrier.
    constexpr uint64_t kManyRows = 16;
    constexpr uint32_t kInStep = 8;
    const uint32_t in_step = device.subgroup_max_size != 0 ? device.subgroup_max_size : kInStep;
    return rows < kManyRows ? RowSplit{in_step, in_step, {}} : RowSplit{kInStep, 1, {}};
  }
  // Few rows (decoding: one) leave most of a GPU idle, so none of their threads shall have many
  // loads; with many rows other workgroups fill it.
  constexpr uint64_t kFewRows = 64;
  constexpr uint32_t kWidest = 256;
  const uint64_t each = rows <= kFewRows ? 2 : 4;
  const uint32_t most = std::min(
      {kWidest, device.limits.max_invocations_per_workgroup, device.limits.max_workgroup_size_x});
  RowSplit split{.wg_size = 64, .lanes = 1};
  while (split.lanes * 2 <= most && split.lanes * each < loads) {
    split.lanes *= 2;
  }
  split.wg_size = std::max(split.wg_size, split.lanes);
  return split;
}

}  // namespace

Result<RowSplit> rms_norm_split(const graph::DeviceFacts& device, uint64_t rows, uint64_t loads) {
  RowSplit split = threads_of_row(device, rows, loads);
  const auto grid =
      graph::fold_grid(ceil_div<uint64_t>(rows, split.wg_size / split.lanes), device.limits);
  PTERO_REJECT_IF(!grid, unsupported, "Number of rows ({}) exceeds what a grid holds.", rows);
  split.grid = *grid;
  return split;
}

Result<gpu::KernelKey> rms_norm_key(const graph::DeviceFacts& device, const Variant& variant,
                                    const RowSplit& split) {
  PTERO_ASSIGN_OR_RETURN(VariantText text, make_variant(variant));
  gpu::KernelKey key{&wgsl::kRmsNorm, std::move(text.prelude), split.overrides(), text.features};
  if (variant.subgroups && split.lanes == split.wg_size &&
      split.wg_size == device.subgroup_min_size && split.wg_size == device.subgroup_max_size) {
    key.overrides.push_back({"one_subgroup", 1});
  }
  return key;
}

Status dispatch_rms_norm(graph::OpCall& op, const graph::TensorRef& x,
                         const graph::TensorRef& weight, double eps, const graph::BufferRef& y) {
  const size_t last = x.shape.rank() - 1;
  const uint64_t rows = x.shape.numel(0, last);
  PTERO_ASSIGN_OR_RETURN(const Variant variant, choose_variant(op, x, x.shape[last]));
  const uint32_t loads = x.shape[last] / variant.width;
  PTERO_ASSIGN_OR_RETURN(const RowSplit split, rms_norm_split(op.device(), rows, loads));
  PTERO_ASSIGN_OR_RETURN(gpu::KernelKey key, rms_norm_key(op.device(), variant, split));
  return op.dispatch(
      {std::move(key), {x, weight, y}, split.grid},
      wgsl::RmsNormParams{
          .rows = static_cast<uint32_t>(rows), .width = loads, .eps = static_cast<float>(eps)});
}

}  // namespace ptero::ops
