// SPDX-License-Identifier: BSD-3-Clause
// Staging by whole words: half of the threads take the weight apart, a word and its scale once
// each; the other half fetch x. Prelude: that of the part.
//#include "ops/quant_linear/q4_steel_part.wgsl"

fn stage(place: Place, lane: u32, k0: u32) {
  let line = lane / 2u % kLength;
  let pair = lane % 2u; // of quads: a word
  if (lane < kThreads / 2u) {
    let weights = weights_of(place.n0 + line, k0 + pair);
    w_tile[line * kPitch + 2u * pair] = weights.first;
    w_tile[line * kPitch + 2u * pair + 1u] = weights.last;
  } else {
    stage_x(place, k0, line, 2u * pair);
    stage_x(place, k0, line, 2u * pair + 1u);
  }
}
