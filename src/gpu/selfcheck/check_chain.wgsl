// SPDX-License-Identifier: BSD-3-Clause
// y = x / 2 + add, one invocation an element. In a chain every link has another `add`, so that
// the result tells in which order the links ran.
struct Params {
  n: u32,
  add: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i < p.n) {
    y[i] = 0.5 * x[i] + p.add;
  }
}
