// SPDX-License-Identifier: BSD-3-Clause
// The sums of q4_gemv_part.wgsl, added through workgroup memory. Prelude: that of the part.
//#include "ops/quant_linear/q4_gemv_part.wgsl"

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let place = place_of(group, groups);
  var sums = thread_sums(place, lane);
  for (var s = 0u; s < kPartials; s += 1u) {
    partials[lane * kPartials + s] = sums[s];
  }
  for (var half = wg_size / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
      for (var s = 0u; s < kPartials; s += 1u) {
        partials[lane * kPartials + s] += partials[(lane + half) * kPartials + s];
      }
    }
  }
  workgroupBarrier();
  add_and_store(place, lane, 1u);
}
