// SPDX-License-Identifier: BSD-3-Clause
// y[m, n] = g * sigmoid(g) * u with g = x[m, n] and u = x[m, n + p.n]. One thread an element of y.
// Prelude: T.
//#include "ops/common/linear_part.wgsl"
//#include "ops/quant_linear/swiglu_part.wgsl"

struct Params {
  m: u32,
  n: u32, // columns of y
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i < p.m * p.n) {
    let at = i / p.n * 2u * p.n + i % p.n;
    y[i] = T(swiglu(f32(x[at]), f32(x[at + p.n])));
  }
}
