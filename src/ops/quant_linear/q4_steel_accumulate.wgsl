// SPDX-License-Identifier: BSD-3-Clause
// Tiles of q4_steel_part.wgsl that add up in f16: fast where f16 is, and lossy. Each element has
// four sums, of every fourth k, which are added in f32 at the end. Prelude: that of the part with
// F = f16.
//#include "ops/quant_linear/q4_steel_packed_part.wgsl"

// The sums of one row of a thread, by column.
struct Sums {
  a: vec4<F>,
  b: vec4<F>,
  c: vec4<F>,
  d: vec4<F>,
}

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let place = place_of(group, groups);
  if (place.m0 >= p.m) {
    return;
  }
  var sums = array<Sums, kEach>();
  for (var k0 = 0u; k0 < p.words; k0 += kQuads / 2u) {
    stage(place, lane, k0);
    workgroupBarrier();
    for (var q = 0u; q < kQuads; q += 1u) {
      let at = lane % kSide * kPitch + q;
      let w0 = w_tile[at];
      let w1 = w_tile[at + kSide * kPitch];
      let w2 = w_tile[at + 2u * kSide * kPitch];
      let w3 = w_tile[at + 3u * kSide * kPitch];
      for (var r = 0u; r < kEach; r += 1u) {
        let v = x_tile[(lane / kSide + r * kSide) * kPitch + q];
        sums[r].a = fma(v, w0, sums[r].a);
        sums[r].b = fma(v, w1, sums[r].b);
        sums[r].c = fma(v, w2, sums[r].c);
        sums[r].d = fma(v, w3, sums[r].d);
      }
    }
    workgroupBarrier();
  }
  for (var r = 0u; r < kEach; r += 1u) {
    store_row(place, lane, r, vec4f(total(sums[r].a), total(sums[r].b), total(sums[r].c),
                                    total(sums[r].d)));
  }
}

fn total(sums: vec4<F>) -> f32 {
  return dot(vec4f(sums), vec4f(1.0));
}
