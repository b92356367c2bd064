// SPDX-License-Identifier: BSD-3-Clause
// y = a + alpha * b for bytes with a scale and a zero point each, four to a word. One thread a word.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,  // elements
  a_scale: f32,  // over that of y
  a_zero: f32,
  b_scale: f32,  // times alpha, over that of y
  b_zero: f32,
  y_zero: f32,
}

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

fn signed_byte(word: u32, i: u32) -> f32 {
  return f32(bitcast<i32>(word << (24u - 8u * i)) >> 24u);
}

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let word = linear_index(id, groups);
  if (word > (p.n - 1u) / 4u) {
    return;
  }
  let left = a[word];
  let right = b[word];
  var packed = 0u;
  for (var i = 0u; i < 4u; i += 1u) {
    let sum = (signed_byte(left, i) - p.a_zero) * p.a_scale +
              (signed_byte(right, i) - p.b_zero) * p.b_scale;
    let value = clamp(round(sum) + p.y_zero, -128.0, 127.0);
    packed |= (bitcast<u32>(i32(value)) & 0xffu) << (8u * i);
  }
  y[word] = packed;
}
