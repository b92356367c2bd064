// SPDX-License-Identifier: BSD-3-Clause
// Rows of k and v go into their caches from the row in a slot on. One thread an element of each.
// Prelude: T (k and v) and C (the caches), scalars or vectors.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32, // of k
  width: u32, // of a row
  rows: u32,
  capacity: u32, // rows of a cache
  slot: u32,
}

@group(0) @binding(0) var<storage, read> k: array<T>;
@group(0) @binding(1) var<storage, read> v: array<T>;
@group(0) @binding(2) var<storage, read> slots: array<i32>;
@group(0) @binding(3) var<storage, read_write> k_cache: array<C>;
@group(0) @binding(4) var<storage, read_write> v_cache: array<C>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let at = u32(clamp(slots[p.slot], 0, i32(p.capacity - p.rows))) * p.width + i;
  k_cache[at] = C(k[i]);
  v_cache[at] = C(v[i]);
}
