// SPDX-License-Identifier: BSD-3-Clause
// y[i] = apply(a[i], b[i]) where either operand may be a single element, repeated (step 0); the
// rest as in pointwise_unary.wgsl, with `fn apply(a: C, b: C, s: vec2<C>) -> R`.
//#include "ops/common/linear_part.wgsl"
//#include "ops/common/pointwise_math_part.wgsl"

struct Params {
  n: u32,
  a_step: u32,
  b_step: u32,
  s: vec2u, // bits of the operator's scalars
}

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let word = linear_index(id, groups);
  let first = word * kLanes;
  if (first >= p.n) {
    return;
  }
  var bits = 0u;
  for (var lane = 0u; lane < kLanes; lane += 1u) {
    let i = first + lane;
    if (i < p.n) {
      let r = apply(load_a(i * p.a_step), load_b(i * p.b_step), bitcast<vec2<C>>(p.s));
      bits |= encode(r) << (lane * (32u / kLanes));
    }
  }
  y[word] = bits;
}
