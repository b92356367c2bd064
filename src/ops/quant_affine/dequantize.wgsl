// SPDX-License-Identifier: BSD-3-Clause
// y = (x - zero) * scale, with four bytes of x to a word. One thread an element of y.
// Prelude: T, the type of y.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32, // elements
  scale: f32,
  zero: i32,
  is_signed: u32, // bytes are int8, not uint8
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let byte = (x[i / 4u] >> (i % 4u * 8u)) & 0xffu;
  // The sign bit of a byte counts -128 and not 128.
  let value = i32(byte) - select(0, 256, p.is_signed == 1u && byte >= 128u);
  y[i] = T(f32(value - p.zero) * p.scale);
}
