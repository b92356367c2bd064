// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/kernel_types.h"

#include "base/checked.h"

namespace ptero::ops {

std::string ElementType::alias() const {
  return fmt::format("alias T = {};\n", name);
}

Result<ElementType> element_type(const graph::TensorRef& tensor) {
  switch (tensor.dtype) {
    case pte::GraphDtype::float32:
      return ElementType{"f32", {}};
    case pte::GraphDtype::float16:
      return ElementType{"f16", {gpu::Feature::shader_f16}};
    case pte::GraphDtype::int32:
      return ElementType{"i32", {}};
    default:
      return make_error(ErrorCode::unsupported,
                        "Element type ({}) of tensor {} has no kernel in this operator.",
                        pte::name_of(tensor.dtype), tensor.id);
  }
}

Status require_float(const graph::TensorRef& tensor) {
  PTERO_REJECT_IF(!tensor.is_float(), unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(tensor.dtype), tensor.id);
  return ok_status();
}

Status require_same_type(const graph::TensorRef& a, const graph::TensorRef& b) {
  PTERO_REJECT_IF(a.dtype != b.dtype, unsupported,
                  "Element types ({} and {}) of tensors {} and {} differ.", pte::name_of(a.dtype),
                  pte::name_of(b.dtype), a.id, b.id);
  return ok_status();
}

Result<gpu::Grid> linear_grid(const graph::OpCall& op, uint64_t threads) {
  const auto grid = graph::fold_grid(ceil_div<uint64_t>(threads, kThreads), op.device().limits);
  PTERO_REJECT_IF(!grid, unsupported, "Number of threads ({}) exceeds what a grid holds.", threads);
  return *grid;
}

}  // namespace ptero::ops
