// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <utility>

#include "base/half.h"
#include "passes/cache_tensors.h"
#include "passes/converted_source.h"
#include "passes/passes.h"

namespace ptero::passes {
namespace {

// The tensor as float16 from now on, and what it starts from.
void halve(pte::Graph& graph, uint32_t id) {
  auto& tensor = std::get<pte::GraphTensor>(graph.values[id]);
  tensor.dtype = pte::GraphDtype::float16;
  if (!tensor.constant_id) {
    return;
  }
  // Others may read the constant as it is.
  pte::GraphConstant constant = graph.constants[*tensor.constant_id];
  if (!constant.named_key.empty()) {
    constant.named_key += " in float16";
  }
  constant.data = ByteRange::whole(
      std::make_shared<ConvertedSource<float, uint16_t>>(constant.data, float_to_half));
  tensor.constant_id = static_cast<uint32_t>(graph.constants.size());
  graph.constants.push_back(std::move(constant));
}

}  // namespace

Status halve_caches(pte::Graph& graph, const graph::DeviceFacts& device) {
  if (!device.options.enable_f16_kv_cache || !device.features.contains(gpu::Feature::shader_f16)) {
    return ok_status();
  }
  change_caches(graph, only_caches(written_caches(graph, {pte::GraphDtype::float32}), graph),
                [&](uint32_t id) { halve(graph, id); });
  return ok_status();
}

}  // namespace ptero::passes
