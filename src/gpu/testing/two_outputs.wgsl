// SPDX-License-Identifier: BSD-3-Clause
// low[i] = i and high[i] = 1000 + i, one invocation an element of the 64.
@group(0) @binding(0) var<storage, read_write> low: array<u32>;
@group(0) @binding(1) var<storage, read_write> high: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  low[id.x] = id.x;
  high[id.x] = 1000u + id.x;
}
