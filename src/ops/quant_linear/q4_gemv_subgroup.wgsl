// SPDX-License-Identifier: BSD-3-Clause
// The sums of q4_gemv_part.wgsl, added in subgroups first. Prelude: that of the part.
//#include "ops/quant_linear/q4_gemv_part.wgsl"

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32, @builtin(subgroup_size) size: u32,
        @builtin(subgroup_invocation_id) id: u32) {
  let place = place_of(group, groups);
  var sums = thread_sums(place, lane);
  for (var s = 0u; s < kPartials; s += 1u) {
    let sum = subgroupAdd(sums[s]);
    if (id == 0u) {
      partials[lane / size * kPartials + s] = sum;
    }
  }
  workgroupBarrier();
  add_and_store(place, lane, (wg_size + size - 1u) / size);
}
