// SPDX-License-Identifier: BSD-3-Clause
// Operators that move elements without computing anything.
#include "graph/operator.h"
#include "ops/shape/shape_ops.h"

namespace ptero::ops {

void register_shape(graph::OperatorRegistry& operators) {
  operators.add("aten.slice_copy.Tensor", plan_slice);
  operators.add("aten.select_copy.int", plan_select);
  operators.add("aten.split_with_sizes_copy.default", plan_split);
  operators.add("aten.cat.default", plan_cat);
  operators.add("aten.constant_pad_nd.default", plan_pad);
  operators.add("aten.permute.default", plan_permute);
  operators.add("aten.permute_copy.default", plan_permute);
  operators.add("aten.flip.default", plan_flip);
  operators.add("aten.expand_copy.default", plan_expand);
  operators.add("aten.repeat.default", plan_repeat);
  operators.add("aten.pixel_shuffle.default", plan_pixel_shuffle);
}

}  // namespace ptero::ops
