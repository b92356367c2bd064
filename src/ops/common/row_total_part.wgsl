// SPDX-License-Identifier: BSD-3-Clause
// The sum over the threads of a row, added in subgroups first where the variant has them and the
// workgroup has one row. Prelude: a variant ("ops/common/variant.h").
//#include "ops/common/row_reduce_part.wgsl"

override one_subgroup: bool = false; // the whole workgroup is one: no barrier

// All threads of the workgroup call it together, once.
fn row_total(index: u32, value: f32) -> f32 {
  if (!kSubgroups || lanes != wg_size || lanes == 1u) {
    return row_sum(index, value);
  }
  let part = subgroup_total(value);
  if (one_subgroup) {
    return part;
  }
  let size = subgroup_lanes();
  if (index % size == 0u) {
    row_partials[index / size] = part;
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i * size < wg_size; i += 1u) {
    sum += row_partials[i];
  }
  return sum;
}
