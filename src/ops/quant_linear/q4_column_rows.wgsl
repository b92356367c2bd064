// SPDX-License-Identifier: BSD-3-Clause
// Four rows and four columns of y an invocation; see the part. Prelude: that of the part.
//#include "ops/quant_linear/q4_column_part.wgsl"

fn quads_of_x(rows: vec4u, at: u32, factors: vec4f) -> mat4x4f {
  return mat4x4f(vec4f(x[rows.x + at]) * factors, vec4f(x[rows.y + at]) * factors,
                 vec4f(x[rows.z + at]) * factors, vec4f(x[rows.w + at]) * factors);
}

// A column of the matrix is a row of y.
fn products(words: vec4u, rows: vec4u, at: u32) -> mat4x4f {
  return first_quad(words) * quads_of_x(rows, at, kFirst) +
         last_quad(words) * quads_of_x(rows, at + 1u, kLast);
}

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let place = place_of(group.x + group.y * groups.x, lane, 4u);
  // Rows behind the last repeat it.
  let rows = min(vec4u(place.m) + vec4u(0u, 1u, 2u, 3u), vec4u(p.m - 1u)) * p.x_row + p.x_first;
  var walk = Walk(p.s_first, p.group_words);
  var sums = mat4x4f();
  for (var i = 0u; i < p.words; i += kWords) {
    let at = place.weights + vec4u(i / kWords);
    let a = weight[at.x];
    let b = weight[at.y];
    let c = weight[at.z];
    let d = weight[at.w];
    var part = products(words_of(a, b, c, d, 0u), rows, 2u * i);
    if (kWords > 1u) {
      part += products(words_of(a, b, c, d, 1u), rows, 2u * i + 2u);
    }
    if (kWords > 2u) {
      part += products(words_of(a, b, c, d, 2u), rows, 2u * i + 4u);
      part += products(words_of(a, b, c, d, 3u), rows, 2u * i + 6u);
    }
    let scale = scales_of(walk, place.columns);
    sums += mat4x4f(part[0] * scale, part[1] * scale, part[2] * scale, part[3] * scale);
    walk = after(walk, i + kWords);
  }
  store_row(place, place.m, sums[0]);
  store_row(place, place.m + 1u, sums[1]);
  store_row(place, place.m + 2u, sums[2]);
  store_row(place, place.m + 3u, sums[3]);
}
