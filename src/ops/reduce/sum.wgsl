// SPDX-License-Identifier: BSD-3-Clause
// y[r] = finish(the sum of line r of x): lines of p.length elements that lie p.stride apart, as in
// softmax.wgsl. `lanes` threads a line.
// Prelude: T and R, the types of x and y; Sum, that of sums; `fn finish(sum: Sum) -> R`, which
// may use p.scale.
//#include "ops/common/rows_part.wgsl"

struct Params {
  rows: u32,
  length: u32,
  stride: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<R>;
@group(1) @binding(0) var<uniform> p: Params;

var<workgroup> partials: array<Sum, wg_size>;

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let row = split_row(group, groups, index);
  let length = select(0u, p.length, row < p.rows);
  let base = row / p.stride * p.stride * p.length + row % p.stride;
  let lane = index % lanes;
  var sum = Sum(0);
  for (var i = lane; i < length; i += lanes) {
    sum += Sum(x[base + i * p.stride]);
  }
  partials[index] = sum;
  for (var half = lanes / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
      partials[index] += partials[index + half];
    }
  }
  if (row < p.rows && lane == 0u) {
    y[row] = finish(partials[index]);
  }
}
