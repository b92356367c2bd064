// SPDX-License-Identifier: BSD-3-Clause
// Tiles of q4_steel_part.wgsl, staged by whole words: the same results to the bit as q4_steel.
// Prelude: that of the part.
//#include "ops/quant_linear/q4_steel_packed_part.wgsl"

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let place = place_of(group, groups);
  if (place.m0 >= p.m) {
    return;
  }
  var sums = array<vec4f, kEach>(); // by row
  for (var k0 = 0u; k0 < p.words; k0 += kQuads / 2u) {
    stage(place, lane, k0);
    workgroupBarrier();
    add_products(lane, &sums);
    workgroupBarrier();
  }
  for (var r = 0u; r < kEach; r += 1u) {
    store_row(place, lane, r, sums[r]);
  }
}
