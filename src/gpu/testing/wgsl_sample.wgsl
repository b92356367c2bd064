// SPDX-License-Identifier: BSD-3-Clause
// y[i] = scale * x[i] * weight[i / row] + bias for i < n, over rows of shape.w elements.
// Exercises every feature of the kernel convention in one file. One invocation an element, in a
// grid of up to two dimensions.
//
// Prelude: T, the element type; `fn activate(v: T) -> T`.
//#include "gpu/testing/sample_index_part.wgsl"

struct Params {
  n: u32,
  origin: vec2<i32>,  // not read: it leaves a gap behind n
  shape: vec4u,
  bias: vec3f,
  scale: f32,
  last: f32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(1) var<storage> weight: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

override wg_size: u32 = 64;
override negate: bool = false;
override gain: f32;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups.x * wg_size);
  if (i >= p.n) {
    return;
  }
  let sign = select(gain, -gain, negate);
  let scaled = p.scale * sign * f32(x[i]) * f32(weight[i / p.shape.w]);
  y[i] = activate(T(scaled + p.bias.z));
}
