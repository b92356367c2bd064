// SPDX-License-Identifier: BSD-3-Clause
// y = clamp(round(x / scale) + zero, low, high), four bytes to a word. One thread a word of y.
// Prelude: T, the type of x.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32, // elements
  inverse: f32, // 1 / scale
  zero: f32,
  low: f32,
  high: f32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let word = linear_index(id, groups);
  if (word > (p.n - 1u) / 4u) {
    return;
  }
  var packed = 0u;
  for (var i = 0u; i < min(4u, p.n - 4u * word); i += 1u) {
    let value = clamp(round(f32(x[4u * word + i]) * p.inverse) + p.zero, p.low, p.high);
    packed |= (bitcast<u32>(i32(value)) & 0xffu) << (8u * i);
  }
  y[word] = packed;
}
