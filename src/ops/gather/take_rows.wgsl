// SPDX-License-Identifier: BSD-3-Clause
// y[o, j, i] = x[o, indices[j], i], of which x may be only the rows from p.first on (then p.outer
// dimensions are 1 and other dispatches make the rest). One thread an element of y. An index
// outside [0, length) is moved to the nearer end. Prelude: T.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,
  inner: u32,
  count: u32, // of indices
  length: u32, // rows of the whole x
  first: u32, // the rows that are bound
  rows: u32,
  wrap: u32, // 1: -1 is the last row
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> indices: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let line = i / p.inner;
  let given = indices[line % p.count];
  let positive = select(given, given + i32(p.length), given < 0 && p.wrap == 1u);
  let row = u32(clamp(positive, 0, i32(p.length) - 1)) - p.first; // of those bound, or huge
  if (row < p.rows) {
    y[i] = x[(line / p.count * p.rows + row) * p.inner + i % p.inner];
  }
}
