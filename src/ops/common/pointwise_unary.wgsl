// SPDX-License-Identifier: BSD-3-Clause
// y[i] = apply(a[i]) between tensors of any element types, which lie in words. One thread a word
// of y, that is kLanes elements. pointwise.cc writes the prelude: kLanes, C (what is computed in),
// `fn load_a(i: u32) -> C`, `fn apply(a: C, s: vec2<C>) -> R` and `fn encode(r: R) -> u32`.
//#include "ops/common/linear_part.wgsl"
//#include "ops/common/pointwise_math_part.wgsl"

struct Params {
  n: u32,
  s: vec2u, // bits of the operator's scalars
}

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
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
    if (first + lane < p.n) {
      bits |= encode(apply(load_a(first + lane), bitcast<vec2<C>>(p.s))) << (lane * (32u / kLanes));
    }
  }
  y[word] = bits;
}
