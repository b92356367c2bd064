// SPDX-License-Identifier: BSD-3-Clause
// y = (clamp(round(x / scale) + zero, -128, 127) - zero) * scale with a scale and a zero point for
// each row of p.width elements: what a row of bytes would mean. x and y are the rows from p.first
// on. One thread an element.
// Prelude: T, the type of x; S, that of scales.
//#include "ops/common/linear_part.wgsl"
//#include "ops/quant_linear/row_affine_part.wgsl"

struct Params {
  n: u32, // elements
  width: u32,
  first: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> scales: array<S>;
@group(0) @binding(2) var<storage, read> zero_points: array<u32>; // int8, four to a word
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let row = p.first + i / p.width;
  let zero = zero_point(row);
  y[i] = (quantized(f32(x[i]), f32(scales[row]), zero) - zero) * f32(scales[row]);
}
