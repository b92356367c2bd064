// SPDX-License-Identifier: BSD-3-Clause
// y[i] = sum of a[i] ... f[i] for four elements: 96 bytes of parameters, more than immediates hold.
struct Params {
  a: vec4f,
  b: vec4f,
  c: vec4f,
  d: vec4f,
  e: vec4f,
  f: vec4f,
}

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < 4u) {
    let sum = p.a + p.b + p.c + p.d + p.e + p.f;
    y[id.x] = sum[id.x];
  }
}
