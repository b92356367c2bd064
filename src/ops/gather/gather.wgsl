// SPDX-License-Identifier: BSD-3-Clause
// y[c] = x[c with the coordinate along one axis replaced by index[c]], for every coordinate c of
// index; up to eight dimensions, innermost first. One thread an element. An index outside
// [0, length) is moved to the nearer end. Prelude: T.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,
  rank: u32,
  axis: u32,
  length: u32, // of x along the axis
  dims: array<vec4u, 2>, // of index
  x_strides: array<vec4u, 2>,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let along = u32(clamp(index[i], 0, i32(p.length) - 1));
  var rest = i;
  var x_at = 0u;
  for (var axis = 0u; axis < p.rank; axis += 1u) {
    let dim = p.dims[axis / 4u][axis % 4u];
    let at = select(rest % dim, along, axis == p.axis);
    rest /= dim;
    x_at += at * p.x_strides[axis / 4u][axis % 4u];
  }
  y[i] = x[x_at];
}
