// SPDX-License-Identifier: BSD-3-Clause
// y[i] = apply(a[i], b[i]) where one operand may be a single element, repeated (step 0).
// One thread an element. Prelude: T, `fn apply(a: T, b: T, alpha: T) -> T`.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,
  a_step: u32,
  b_step: u32,
  alpha: f32,
}

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i < p.n) {
    y[i] = apply(a[i * p.a_step], b[i * p.b_step], T(p.alpha));
  }
}
