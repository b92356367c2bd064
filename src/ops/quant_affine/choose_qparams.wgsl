// SPDX-License-Identifier: BSD-3-Clause
// The affine parameters that map the range of each row of x, and 0, onto [qmin, qmax]. `lanes`
// threads make four rows one after another: their zero points are the bytes of one word.
// Prelude: T, the type of x; S, that of scales.
//#include "ops/common/row_reduce_part.wgsl"

struct Params {
  rows: u32,
  width: u32,
  qmin: f32,
  qmax: f32,
  eps: f32, // the least scale
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> scales: array<S>;
@group(0) @binding(2) var<storage, read_write> zero_points: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let word = split_row(group, groups, index);
  let first = index % lanes == 0u;
  var packed = 0u;
  for (var r = 0u; r < 4u; r += 1u) {
    let row = word * 4u + r;
    let width = select(0u, p.width, row < p.rows);
    var high = 0.0;
    var low = 0.0;
    for (var i = index % lanes; i < width; i += lanes) {
      let value = f32(x[row * p.width + i]);
      high = max(high, value);
      low = min(low, value);
    }
    high = row_max(index, high);
    low = -row_max(index, -low);
    let scale = max((high - low) / (p.qmax - p.qmin), p.eps);
    let zero = clamp(p.qmin - round(low / scale), p.qmin, p.qmax);
    packed |= (bitcast<u32>(i32(zero)) & 0xffu) << (8u * r);
    if (first && row < p.rows) {
      scales[row] = S(scale);
    }
  }
  if (first && word * 4u < p.rows) {
    zero_points[word] = packed;
  }
}
