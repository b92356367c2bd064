// SPDX-License-Identifier: BSD-3-Clause
// Every word of y is the same. One thread a word.
//#include "ops/common/linear_part.wgsl"

struct Params {
  words: u32,
  word: u32,
}

@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i < p.words) {
    y[i] = p.word;
  }
}
