// SPDX-License-Identifier: BSD-3-Clause
// Puts the rows of x, p.row words each, into y, one every p.y_row words from p.y_base on.
// One thread a word of x.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,  // words of x
  row: u32,
  y_row: u32,
  y_base: u32,
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i < p.n) {
    y[p.y_base + i / p.row * p.y_row + i % p.row] = x[i];
  }
}
