// SPDX-License-Identifier: BSD-3-Clause
// A slice along one axis whose start is read as it runs: for each index of the axes before it, the
// result is one run of p.chunk words. One thread a word.
//#include "ops/common/linear_part.wgsl"

struct Params {
  words: u32,       // of the result
  chunk: u32,       // words of the result for one index of the axes before
  row: u32,         // words for one index of the axis
  outer_step: u32,  // words of x for one index of the axes before
  start: u32,       // slot
  last: u32,        // the largest start
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> slots: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.words) {
    return;
  }
  let start = u32(clamp(slots[p.start], 0, i32(p.last)));
  y[i] = x[(i / p.chunk) * p.outer_step + start * p.row + i % p.chunk];
}
