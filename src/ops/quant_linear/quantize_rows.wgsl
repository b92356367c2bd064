// SPDX-License-Identifier: BSD-3-Clause
// Rows of x in int8, eight elements to a vec2u: those with an even index in the first word, those
// with an odd one in the second, as packed 4-bit weights fall apart. One thread eight elements.
// Prelude: T, the type of x; S, that of scales.
//#include "ops/common/linear_part.wgsl"
//#include "ops/quant_linear/row_affine_part.wgsl"

struct Params {
  n: u32, // eights of elements
  width: u32, // eights in a row
}

@group(0) @binding(0) var<storage, read> x: array<vec4<T>>;
@group(0) @binding(1) var<storage, read> scales: array<S>;
@group(0) @binding(2) var<storage, read> zero_points: array<u32>; // int8, four to a word
@group(0) @binding(3) var<storage, read_write> y: array<vec2u>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let row = i / p.width;
  let zero = zero_point(row);
  let scale = f32(scales[row]);
  var words = vec2u();
  for (var e = 0u; e < 8u; e += 1u) {
    let value = i32(quantized(f32(x[2u * i + e / 4u][e % 4u]), scale, zero));
    words[e % 2u] |= (bitcast<u32>(value) & 0xffu) << (e / 2u * 8u);
  }
  y[i] = words;
}
