// SPDX-License-Identifier: BSD-3-Clause
// pointwise_binary.wgsl with both operands broadcast to y's shape: up to eight dimensions,
// innermost first, stride 0 along what is repeated.
//#include "ops/common/linear_part.wgsl"
//#include "ops/common/pointwise_math_part.wgsl"

struct Params {
  n: u32,
  rank: u32, // at least 1
  s: vec2u, // bits of the operator's scalars
  dims: array<vec4u, 2>,
  a_strides: array<vec4u, 2>,
  b_strides: array<vec4u, 2>,
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
    if (first + lane < p.n) {
      var rest = first + lane;
      var at = vec2u(0u);
      for (var axis = 0u; axis < p.rank; axis += 1u) {
        let dim = p.dims[axis / 4u][axis % 4u];
        let strides = vec2u(p.a_strides[axis / 4u][axis % 4u], p.b_strides[axis / 4u][axis % 4u]);
        at += rest % dim * strides;
        rest /= dim;
      }
      let r = apply(load_a(at.x), load_b(at.y), bitcast<vec2<C>>(p.s));
      bits |= encode(r) << (lane * (32u / kLanes));
    }
  }
  y[word] = bits;
}
