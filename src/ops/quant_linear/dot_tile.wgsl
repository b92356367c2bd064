// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with many rows of x in int8, by packed dot products:
// y[m, n] = x_scales[m] * sum over g of scales[g, n] * (sum over k in g of x[m, k] * w[n, k]
//           - zero[m] * sums[g, n]) (+ bias[n]), with w - 8 instead of w and sums over these.
// A workgroup of side x side threads makes a tile of y of 4 side rows and columns, staging 32
// elements of k at a time in workgroup memory; a group is a multiple of them, or all of k.
// Prelude: T, the type of bias and y; S, that of scales; XS, that of x_scales.
//#include "ops/quant_linear/row_affine_part.wgsl"

struct Params {
  m: u32,
  n: u32,
  words: u32, // eights of elements in a row of x and of the weight
  w_row: u32,
  group_words: u32,
  s_row: u32,
  sums_row: u32,
  flags: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec2u>; // of quantize_rows.wgsl
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<S>;
@group(0) @binding(3) var<storage, read> sums: array<i32>;
@group(0) @binding(4) var<storage, read> x_scales: array<XS>;
@group(0) @binding(5) var<storage, read> zero_points: array<u32>;
@group(0) @binding(6) var<storage, read> bias: array<T>; // anything without kHasBias
@group(0) @binding(7) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

const kHasBias = 1u;

override side: u32 = 16;

const kEach = 4u; // rows and columns a thread
const kDepth = 4u; // words along k
const kPitch = kDepth + 1u; // of a row of a tile, so that neighbours use other banks

var<workgroup> x_tile: array<vec2u, kEach * side * kPitch>;
var<workgroup> w_tile: array<vec2u, kEach * side * kPitch>;

// Eight weights, minus 8, as int8: those with an even index and those with an odd one.
fn signed_halves(word: u32) -> vec2u {
  let nibbles = vec2u(word, word >> 4u) & vec2u(0x0f0f0f0fu);
  // The high bit keeps a byte's borrow from its neighbour.
  return ((nibbles | vec2u(0x80808080u)) - vec2u(0x08080808u)) ^ vec2u(0x80808080u);
}

@compute @workgroup_size(side * side)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let length = kEach * side;
  let tiles_n = (p.n + length - 1u) / length;
  let tile = group.x + group.y * groups.x;
  let m0 = tile / tiles_n * length;
  let n0 = tile % tiles_n * length;
  if (m0 >= p.m) {
    return;
  }
  let row = lane / side;
  let column = lane % side;

  var products = array<vec4f, kEach>(); // by row
  var weights = vec4f(); // sum of the dequantised weights, by column
  for (var k0 = 0u; k0 < p.words; k0 += kDepth) {
    for (var i = lane; i < length * kDepth; i += side * side) {
      let line = i / kDepth;
      let word = k0 + i % kDepth;
      var of_x = vec2u();
      var of_w = vec2u();
      if (word < p.words && m0 + line < p.m) {
        of_x = x[(m0 + line) * p.words + word];
      }
      if (word < p.words && n0 + line < p.n) {
        of_w = signed_halves(weight[(n0 + line) * p.w_row + word]);
      }
      x_tile[line * kPitch + i % kDepth] = of_x;
      w_tile[line * kPitch + i % kDepth] = of_w;
    }
    workgroupBarrier();
    var step = array<vec4i, kEach>();
    for (var q = 0u; q < kDepth; q += 1u) {
      for (var c = 0u; c < kEach; c += 1u) {
        let w = w_tile[(column + c * side) * kPitch + q];
        for (var r = 0u; r < kEach; r += 1u) {
          let value = x_tile[(row + r * side) * kPitch + q];
          step[r][c] += dot4I8Packed(value.x, w.x) + dot4I8Packed(value.y, w.y);
        }
      }
    }
    let g = k0 / p.group_words;
    var scale = vec4f();
    for (var c = 0u; c < kEach; c += 1u) {
      let n = min(n0 + column + c * side, p.n - 1u);
      scale[c] = f32(scales[g * p.s_row + n]);
      if (k0 % p.group_words == 0u) {
        weights[c] += scale[c] * f32(sums[g * p.sums_row + n]);
      }
    }
    for (var r = 0u; r < kEach; r += 1u) {
      products[r] += scale * vec4f(step[r]);
    }
    workgroupBarrier();
  }
  for (var r = 0u; r < kEach; r += 1u) {
    let m = m0 + row + r * side;
    if (m >= p.m) {
      continue;
    }
    let values = f32(x_scales[m]) * (products[r] - zero_point(m) * weights);
    for (var c = 0u; c < kEach; c += 1u) {
      let n = n0 + column + c * side;
      if (n < p.n) {
        var value = values[c];
        if ((p.flags & kHasBias) != 0u) {
          value += f32(bias[n]);
        }
        y[m * p.n + n] = T(value);
      }
    }
  }
}
