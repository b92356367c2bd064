// SPDX-License-Identifier: BSD-3-Clause
// y = y / 2 + add in place: one binding, read and written. One invocation an element.
struct Params {
  n: u32,
  add: f32,
}

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < p.n) {
    y[id.x] = 0.5 * y[id.x] + p.add;
  }
}
