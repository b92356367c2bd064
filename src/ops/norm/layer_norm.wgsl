// SPDX-License-Identifier: BSD-3-Clause
// y = (x - mean) * rstd * weight + bias over rows of p.width elements, with rstd =
// 1 / sqrt(variance + eps); mean and rstd of each row come out too. `lanes` threads a row.
// Prelude: T, and Stat, the type of mean and rstd.
//#include "ops/common/row_reduce_part.wgsl"

const kHasWeight = 1u;
const kHasBias = 2u;

struct Params {
  rows: u32,
  width: u32,
  eps: f32,
  flags: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> weight: array<T>; // anything without its flag
@group(0) @binding(2) var<storage, read> bias: array<T>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<storage, read_write> means: array<Stat>;
@group(0) @binding(5) var<storage, read_write> rstds: array<Stat>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let row = split_row(group, groups, index);
  let width = select(0u, p.width, row < p.rows);
  let base = row * p.width;
  var sum = 0.0;
  for (var i = index % lanes; i < width; i += lanes) {
    sum += f32(x[base + i]);
  }
  let mean = row_sum(index, sum) / f32(p.width);
  // From the mean, not from the sum of squares: that difference loses all digits far from 0.
  var squares = 0.0;
  for (var i = index % lanes; i < width; i += lanes) {
    let off = f32(x[base + i]) - mean;
    squares += off * off;
  }
  let rstd = inverseSqrt(row_sum(index, squares) / f32(p.width) + p.eps);
  for (var i = index % lanes; i < width; i += lanes) {
    var value = (f32(x[base + i]) - mean) * rstd;
    if ((p.flags & kHasWeight) != 0u) {
      value *= f32(weight[i]);
    }
    if ((p.flags & kHasBias) != 0u) {
      value += f32(bias[i]);
    }
    y[base + i] = T(value);
  }
  if (row < p.rows && index % lanes == 0u) {
    means[row] = Stat(mean);
    rstds[row] = Stat(rstd);
  }
}
