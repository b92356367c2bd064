// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/half.h"
#include "passes/converted_source.h"
#include "passes/passes.h"

namespace ptero::passes {
Status widen_half(pte::Graph& graph, const graph::DeviceFacts& device) {
  if (device.features.contains(gpu::Feature::shader_f16)) {
    return ok_status();
  }
  std::vector<bool> has_half(graph.constants.size());
  std::vector<bool> has_other(graph.constants.size());
  for (pte::GraphValue& value : graph.values) {
    auto* tensor = std::get_if<pte::GraphTensor>(&value);
    if (tensor == nullptr) {
      continue;
    }
    const bool is_half = tensor->dtype == pte::GraphDtype::float16;
    if (tensor->constant_id) {
      (is_half ? has_half : has_other)[*tensor->constant_id] = true;
    }
    if (is_half) {
      tensor->dtype = pte::GraphDtype::float32;
    }
  }
  for (size_t i = 0; i < graph.constants.size(); ++i) {
    if (!has_half[i]) {
      continue;
    }
    pte::GraphConstant& constant = graph.constants[i];
    PTERO_REJECT_IF(has_other[i], unsupported,
                    "Constant {} is of half precision for one tensor and of another type for "
                    "another; that takes a device with shader-f16.",
                    i);
    constant.data = ByteRange::whole(
        std::make_shared<ConvertedSource<uint16_t, float>>(constant.data, half_to_float));
  }
  return ok_status();
}

}  // namespace ptero::passes
