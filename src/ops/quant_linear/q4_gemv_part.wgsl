// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with few rows of x: a workgroup makes kColumns columns of kRows rows of y,
// its threads sharing the sum over k. The main function adds their partial sums.
// Prelude: that of the part below, kRows and kColumns.
//#include "ops/quant_linear/q4_part.wgsl"

override wg_size: u32 = 64;

const kSums = kRows * kColumns;

var<workgroup> partials: array<f32, wg_size * kSums>; // a row a thread, or a row a subgroup

struct Place {
  m0: u32,
  n0: u32,
}

fn place_of(group: vec3u, groups: vec3u) -> Place {
  return Place(group.z * kRows, (group.x + group.y * groups.x) * kColumns);
}

// What one thread adds to each of the sums, by row and then column. What lies behind the last row
// or column repeats it.
fn thread_sums(place: Place, lane: u32) -> array<f32, kSums> {
  var sums: array<f32, kSums>;
  for (var i = lane * kWords; i < p.words; i += wg_size * kWords) {
    for (var c = 0u; c < kColumns; c += 1u) {
      let n = min(place.n0 + c, p.n - 1u);
      let load = weight[(n * p.w_row + p.w_first + i) / kWords];
      let scale = scale_at(i, n);
      for (var r = 0u; r < kRows; r += 1u) {
        let row = min(place.m0 + r, p.m - 1u) * p.x_row + p.x_first + 2u * i;
        var sum = 0.0;
        for (var j = 0u; j < kWords; j += 1u) {
          let word = ordered(word_of(load, j));
          sum += dot(vec4f(x[row + 2u * j]), first_half(word)) +
                 dot(vec4f(x[row + 2u * j + 1u]), last_half(word));
        }
        sums[r * kColumns + c] += sum * scale;
      }
    }
  }
  return sums;
}

// Thread i adds `rows` rows of partials and stores sum i, so kSums is at most wg_size.
fn add_and_store(place: Place, lane: u32, rows: u32) {
  let m = place.m0 + lane / kColumns;
  let n = place.n0 + lane % kColumns;
  if (lane < kSums && m < p.m && n < p.n) {
    var sum = 0.0;
    for (var i = 0u; i < rows; i += 1u) {
      sum += partials[i * kSums + lane];
    }
    store(m, n, sum);
  }
}
