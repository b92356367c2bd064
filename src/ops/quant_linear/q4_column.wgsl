// SPDX-License-Identifier: BSD-3-Clause
// One row and four columns of y an invocation; see the part. Prelude: that of the part.
//#include "ops/quant_linear/q4_column_part.wgsl"

fn products(words: vec4u, at: u32) -> vec4f {
  return first_quad(words) * (vec4f(x[at]) * kFirst) +
         last_quad(words) * (vec4f(x[at + 1u]) * kLast);
}

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let place = place_of(group.x + group.y * groups.x, lane, 1u);
  let row = min(place.m, p.m - 1u) * p.x_row + p.x_first;
  var walk = Walk(p.s_first, p.group_words);
  var sums = vec4f();
  for (var i = 0u; i < p.words; i += kWords) {
    let at = place.weights + vec4u(i / kWords);
    let a = weight[at.x];
    let b = weight[at.y];
    let c = weight[at.z];
    let d = weight[at.w];
    let k = row + 2u * i;
    var part = products(words_of(a, b, c, d, 0u), k);
    if (kWords > 1u) {
      part += products(words_of(a, b, c, d, 1u), k + 2u);
    }
    if (kWords > 2u) {
      part += products(words_of(a, b, c, d, 2u), k + 4u);
      part += products(words_of(a, b, c, d, 3u), k + 6u);
    }
    sums += part * scales_of(walk, place.columns);
    walk = after(walk, i + kWords);
  }
  store_row(place, place.m, sums);
}
