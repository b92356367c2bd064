// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with many rows of x: a workgroup of 256 threads makes a tile of y of 64 rows
// and columns, staging 16 elements of k at a time of x and of the dequantised weight in workgroup
// memory; a thread makes 4 x 4 elements, 16 rows and columns apart. The main function stages the
// weight and sums up.
// Prelude: that of the part below with kWords = 1, and F, the type that values are multiplied in.
//#include "ops/quant_linear/q4_part.wgsl"

const kSide = 16u;
const kThreads = kSide * kSide;
const kEach = 4u; // rows and columns a thread
const kLength = kEach * kSide; // of a side of the tile
const kQuads = 4u; // vec4s along k
const kPitch = kQuads + 1u; // of a row of a tile, so that neighbours use other banks

var<workgroup> x_tile: array<vec4<F>, kLength * kPitch>;
var<workgroup> w_tile: array<vec4<F>, kLength * kPitch>;

struct Place {
  m0: u32,
  n0: u32,
}

fn place_of(group: vec3u, groups: vec3u) -> Place {
  let tiles_n = (p.n + kLength - 1u) / kLength;
  let tile = group.x + group.y * groups.x;
  return Place(tile / tiles_n * kLength, tile % tiles_n * kLength);
}

// Four elements of a row of x, from word k0 on.
fn stage_x(place: Place, k0: u32, line: u32, quad: u32) {
  var values = vec4<F>();
  if (k0 + quad / 2u < p.words && place.m0 + line < p.m) {
    values = vec4<F>(x[(place.m0 + line) * p.x_row + p.x_first + 2u * k0 + quad]);
  }
  x_tile[line * kPitch + quad] = values;
}

// Eight elements of a row of the weight, rounded once; zeros behind the last row and word.
struct Weights {
  first: vec4<F>,
  last: vec4<F>,
}
fn weights_of(n: u32, word: u32) -> Weights {
  if (word >= p.words || n >= p.n) {
    return Weights();
  }
  let bits = ordered(weight[n * p.w_row + p.w_first + word]);
  let scale = scale_at(word, n);
  return Weights(vec4<F>(first_half(bits) * scale), vec4<F>(last_half(bits) * scale));
}

// Adds what is staged to a thread's sums, by row: products in F, sums in f32.
fn add_products(lane: u32, sums: ptr<function, array<vec4f, kEach>>) {
  for (var q = 0u; q < kQuads; q += 1u) {
    let at = lane % kSide * kPitch + q;
    let w0 = w_tile[at];
    let w1 = w_tile[at + kSide * kPitch];
    let w2 = w_tile[at + 2u * kSide * kPitch];
    let w3 = w_tile[at + 3u * kSide * kPitch];
    let wx = vec4<F>(w0.x, w1.x, w2.x, w3.x);
    let wy = vec4<F>(w0.y, w1.y, w2.y, w3.y);
    let wz = vec4<F>(w0.z, w1.z, w2.z, w3.z);
    let ww = vec4<F>(w0.w, w1.w, w2.w, w3.w);
    for (var r = 0u; r < kEach; r += 1u) {
      let v = x_tile[(lane / kSide + r * kSide) * kPitch + q];
      (*sums)[r] += vec4f(v.x * wx);
      (*sums)[r] += vec4f(v.y * wy);
      (*sums)[r] += vec4f(v.z * wz);
      (*sums)[r] += vec4f(v.w * ww);
    }
  }
}

fn store_row(place: Place, lane: u32, r: u32, sums: vec4f) {
  let m = place.m0 + lane / kSide + r * kSide;
  for (var c = 0u; c < kEach; c += 1u) {
    let n = place.n0 + lane % kSide + c * kSide;
    if (m < p.m && n < p.n) {
      store(m, n, sums[c]);
    }
  }
}
