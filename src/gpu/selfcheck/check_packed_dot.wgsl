// SPDX-License-Identifier: BSD-3-Clause
// y = dot product of four signed bytes of a and b. Needs packed-dot.
struct Params {
  n: u32,
}

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<i32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < p.n) {
    y[id.x] = dot4I8Packed(a[id.x], b[id.x]);
  }
}
