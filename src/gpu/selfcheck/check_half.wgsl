// SPDX-License-Identifier: BSD-3-Clause
// y = x * x in half precision, stored as f32. Needs shader-f16.
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < p.n) {
    y[id.x] = f32(x[id.x] * x[id.x]);
  }
}
