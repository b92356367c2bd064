// SPDX-License-Identifier: BSD-3-Clause
// y[i, d] = (w[indices[i], d] - 8) * scales[indices[i], d / group], with two 4-bit w to a byte, for
// those rows of the table that are bound; other dispatches make the rest. One thread an element of
// y. An index outside [0, length) is moved to the nearer end.
// Prelude: T, the type of y; S, that of scales.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,
  width: u32, // elements in a row of y
  w_row: u32, // bytes in a row of the weight
  group: u32,
  s_row: u32, // groups in a row of the scales
  length: u32, // rows of the whole table
  first: u32, // the rows that are bound
  rows: u32,
}

@group(0) @binding(0) var<storage, read> weight: array<u32>;
@group(0) @binding(1) var<storage, read> scales: array<S>;
@group(0) @binding(2) var<storage, read> indices: array<i32>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

override swapped: bool = false; // the first of two elements in the high half of their byte

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let row = u32(clamp(indices[i / p.width], 0, i32(p.length) - 1)) - p.first; // or huge
  if (row >= p.rows) {
    return;
  }
  let d = i % p.width;
  let byte = row * p.w_row + d / 2u;
  let shift = byte % 4u * 8u + select(d % 2u, 1u - d % 2u, swapped) * 4u;
  let value = f32((weight[byte / 4u] >> shift) & 15u) - 8.0;
  y[i] = T(value * f32(scales[row * p.s_row + d / p.group]));
}
