// SPDX-License-Identifier: BSD-3-Clause
#include "ops/shape/strided.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "ops/common/kernel_types.h"
#include "ops/shape/strided_copy.wgsl.h"
#include "ops/shape/strided_copy_packed.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::TensorRef;

constexpr size_t kMaxAxes = 16;  // of the kernels

// Drops axes of one element and joins neighbours that one stride walks through.
std::vector<StridedAxis> merged(const std::vector<StridedAxis>& axes) {
  std::vector<StridedAxis> result;
  for (const StridedAxis& axis : axes) {
    if (axis.dim == 1 && !axis.windowed()) {
      continue;
    }
    if (!result.empty() && !axis.windowed() && !result.back().windowed() &&
        result.back().stride == axis.stride * axis.dim) {
      result.back() = StridedAxis(result.back().dim * axis.dim, axis.stride);
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

// Several elements at a time where all runs of the innermost axis start and end at words.
bool widen(StridedWalk& walk, uint32_t per_word) {
  if (per_word == 1) {
    return true;
  }
  const auto whole = [&](int64_t value) { return value % per_word == 0; };
  if (walk.axes.empty() || walk.axes.back().stride != 1 || !whole(walk.axes.back().dim) ||
      !whole(walk.base)) {
    return false;
  }
  for (size_t i = 0; i < walk.axes.size(); ++i) {
    const StridedAxis& axis = walk.axes[i];
    if (axis.windowed() || (i + 1 < walk.axes.size() && !whole(axis.stride))) {
      return false;
    }
  }
  for (StridedAxis& axis : walk.axes) {
    axis.stride /= per_word;
  }
  walk.axes.back() = StridedAxis(walk.axes.back().dim / per_word, 1);
  walk.base /= per_word;
  return true;
}

Status check_range(const StridedWalk& walk, const TensorRef& x) {
  int64_t low = walk.base;
  int64_t high = walk.base;
  for (const StridedAxis& axis : walk.axes) {
    if (axis.size == 0) {
      return ok_status();  // nothing has a source
    }
    const int64_t reach = axis.stride * (int64_t{axis.size} - 1);
    (reach < 0 ? low : high) += reach;
  }
  PTERO_REJECT_IF(low < 0 || static_cast<uint64_t>(high) >= x.numel(), internal,
                  "Elements [{}, {}] of tensor {} are read, which has {}.", low, high, x.id,
                  x.numel());
  return ok_status();
}

template <typename Params>
Params make_params(const StridedWalk& walk, uint64_t n) {
  Params params{.n = static_cast<uint32_t>(n),
                .rank = static_cast<uint32_t>(walk.axes.size()),
                .base = static_cast<uint32_t>(walk.base),
                .fill = walk.fill};
  for (size_t i = 0; i < walk.axes.size(); ++i) {
    const StridedAxis& axis = walk.axes[walk.axes.size() - 1 - i];  // innermost first
    params.dims[i / 4][i % 4] = axis.dim;
    params.strides[i / 4][i % 4] = static_cast<uint32_t>(axis.stride);
    params.lows[i / 4][i % 4] = static_cast<uint32_t>(axis.low);
    params.sizes[i / 4][i % 4] = axis.size;
  }
  return params;
}

}  // namespace

Result<uint32_t> elements_per_word(const TensorRef& tensor) {
  const uint32_t size = pte::element_size(tensor.dtype).value_or(0);
  PTERO_REJECT_IF(size != 1 && size != 2 && size != 4, unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(tensor.dtype), tensor.id);
  return 4 / size;
}

std::vector<StridedAxis> axes_of(const graph::Shape& shape) {
  const auto strides = graph::strides(shape);
  std::vector<StridedAxis> axes;
  for (size_t i = 0; i < shape.rank(); ++i) {
    axes.emplace_back(shape[i], strides[i]);
  }
  return axes;
}

Status record_walk(OpCall& op, const TensorRef& x, const TensorRef& y, StridedWalk walk) {
  PTERO_RETURN_IF_ERROR(require_same_type(x, y));
  PTERO_ASSIGN_OR_RETURN(const uint32_t per_word, elements_per_word(y));
  if (y.numel() == 0) {
    return ok_status();
  }
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  PTERO_REJECT_IF(std::max(x.numel(), y.numel()) >= kMost, unsupported,
                  "Number of elements ({}) of tensor {} or {} exceeds what this operator "
                  "addresses ({}).",
                  std::max(x.numel(), y.numel()), x.id, y.id, kMost - 1);
  walk.axes = merged(walk.axes);
  PTERO_RETURN_IF_ERROR(check_range(walk, x));
  PTERO_REJECT_IF(walk.axes.size() > kMaxAxes, unsupported,
                  "Number of axes ({}) exceeds what this operator addresses ({}).",
                  walk.axes.size(), kMaxAxes);
  const bool windowed = std::any_of(walk.axes.begin(), walk.axes.end(),
                                    [](const StridedAxis& axis) { return axis.windowed(); });
  const std::vector<gpu::OverrideValue> overrides = {{"windowed", windowed ? 1.0 : 0.0}};
  if (widen(walk, per_word)) {
    const uint64_t n = y.numel() / per_word;
    PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, n));
    return op.dispatch({{&wgsl::kStridedCopy, {}, overrides, {}}, {x, y}, grid},
                       make_params<wgsl::StridedCopyParams>(walk, n));
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid,
                         linear_grid(op, ceil_div<uint64_t>(y.numel(), per_word)));
  return op.dispatch({{&wgsl::kStridedCopyPacked,
                       {},
                       {{"windowed", windowed ? 1.0 : 0.0},
                        {"per_word", static_cast<double>(per_word)},
                        {"keep", walk.keep ? 1.0 : 0.0}},
                       {}},
                      {x, y},
                      grid},
                     make_params<wgsl::StridedCopyPackedParams>(walk, y.numel()));
}

}  // namespace ptero::ops
