// SPDX-License-Identifier: BSD-3-Clause
// y[i] = x[source_of(i)], or p.fill where there is no source. Elements are whole words, copied bit
// by bit. One thread an element.
//#include "ops/common/linear_part.wgsl"
//#include "ops/shape/strided_part.wgsl"

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.n) {
    return;
  }
  let at = source_of(i);
  if (windowed && at == kNoSource) {
    y[i] = p.fill;
  } else {
    y[i] = x[at];
  }
}
