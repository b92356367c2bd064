// SPDX-License-Identifier: BSD-3-Clause
// The same with both operands broadcast to y's shape: up to eight dimensions, innermost first,
// stride 0 along what is repeated. One thread an element.
// Prelude: T, `fn apply(a: T, b: T, alpha: T) -> T`.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,
  rank: u32,
  alpha: f32,
  dims: array<vec4u, 2>,
  a_strides: array<vec4u, 2>,
  b_strides: array<vec4u, 2>,
}

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  var rest = i;
  var a_at = 0u;
  var b_at = 0u;
  for (var axis = 0u; axis < p.rank; axis += 1u) {
    let dim = p.dims[axis / 4u][axis % 4u];
    let at = rest % dim;
    rest /= dim;
    a_at += at * p.a_strides[axis / 4u][axis % 4u];
    b_at += at * p.b_strides[axis / 4u][axis % 4u];
  }
  y[i] = apply(a[a_at], b[b_at], T(p.alpha));
}
