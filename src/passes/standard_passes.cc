// SPDX-License-Identifier: BSD-3-Clause
#include "passes/passes.h"

namespace ptero::passes {

const std::vector<graph::GraphPass>& standard_passes() {
  static const std::vector<graph::GraphPass> passes = {
      resize_context, widen_half,    halve_caches, fuse_swiglu,
      fuse_attention, fuse_residual, fuse_norm,    place_activations,
  };
  return passes;
}

}  // namespace ptero::passes
