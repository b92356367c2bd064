// SPDX-License-Identifier: BSD-3-Clause
// Reductions over the threads of a row, through workgroup memory, as subgroups may have any size.
// All threads of the workgroup call them together, and all get the result of their row.
//#include "ops/common/rows_part.wgsl"
var<workgroup> row_partials: array<f32, wg_size>;

fn row_sum(index: u32, value: f32) -> f32 {
  if (lanes == 1u) {
    return value;
  }
  row_partials[index] = value;
  for (var half = lanes / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (index % lanes < half) {
      row_partials[index] += row_partials[index + half];
    }
  }
  workgroupBarrier();
  let sum = row_partials[index - index % lanes];
  workgroupBarrier(); // the next reduction overwrites it
  return sum;
}

fn row_max(index: u32, value: f32) -> f32 {
  if (lanes == 1u) {
    return value;
  }
  row_partials[index] = value;
  for (var half = lanes / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (index % lanes < half) {
      row_partials[index] = max(row_partials[index], row_partials[index + half]);
    }
  }
  workgroupBarrier();
  let largest = row_partials[index - index % lanes];
  workgroupBarrier();
  return largest;
}
