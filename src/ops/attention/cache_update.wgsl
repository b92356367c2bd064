// SPDX-License-Identifier: BSD-3-Clause
// Rows of a value go into a cache: from the row in a slot on, or each into the row that `indices`
// says; a row that the cache does not have takes nothing. One thread an element of the value.
// Prelude: T (the value) and C (the cache).
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32, // of the value
  width: u32, // of a row
  rows: u32,
  capacity: u32, // rows of the cache
  slot: u32,
}

@group(0) @binding(0) var<storage, read> value: array<T>;
@group(0) @binding(1) var<storage, read> slots: array<i32>; // anything when indexed
@group(0) @binding(2) var<storage, read> indices: array<i32>; // anything unless indexed
@group(0) @binding(3) var<storage, read_write> cache: array<C>;
@group(1) @binding(0) var<uniform> p: Params;

override indexed: bool = false;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let row = i / p.width;
  var to = 0u;
  if (indexed) {
    to = u32(indices[row]); // below 0: beyond the end
  } else {
    to = u32(clamp(slots[p.slot], 0, i32(p.capacity - p.rows))) + row;
  }
  if (to < p.capacity) {
    cache[to * p.width + i % p.width] = C(value[i]);
  }
}
