// SPDX-License-Identifier: BSD-3-Clause
// y[m, n] = sum over k of x[m, k] * (w[n, k] - 8) * scales[k / group, n] (+ bias[m or 0, n])
// (+ y[m, n]), with eight 4-bit w to a word, the first in its lowest bits. Sums run over whole words of whole
// groups. Offsets and strides of x count vec4s, those of the weight words.
//
// Prelude: X, the type of x; T, that of bias and y; S, that of scales; kWords, the words of one
// load of the weight; W, the type of such a load, and word_of() to take it apart.

struct Params {
  m: u32,
  n: u32,
  words: u32, // of a weight row that are summed over
  w_row: u32,
  w_first: u32,
  group_words: u32,
  x_row: u32,
  x_first: u32,
  y_row: u32,
  y_first: u32,
  s_row: u32,
  s_first: u32,
  bias_first: u32,
  bias_row: u32, // 0: the same for all rows
  flags: u32,
  eps: f32, // of kernels that normalise x
}

@group(0) @binding(0) var<storage, read> x: array<vec4<X>>;
@group(0) @binding(1) var<storage, read> weight: array<W>;
@group(0) @binding(2) var<storage, read> scales: array<S>;
@group(0) @binding(3) var<storage, read> bias: array<T>; // anything without kHasBias
@group(0) @binding(4) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

const kHasBias = 1u;
const kAddToY = 2u;

override swapped: bool = false; // the first of two elements in the high half of their byte

fn ordered(word: u32) -> u32 {
  if (swapped) {
    return ((word & 0x0f0f0f0fu) << 4u) | ((word >> 4u) & 0x0f0f0f0fu);
  }
  return word;
}

// The first and the last four elements of a word. An integer set into the fraction of 2^23 is a float
// at once; GPUs convert integers at a quarter of the rate of other operations, or less.
const kFraction = 0x4b000000u; // 2^23
fn first_half(word: u32) -> vec4f {
  let elements = (vec4u(word) >> vec4u(0u, 4u, 8u, 12u)) & vec4u(15u);
  return bitcast<vec4f>(elements | vec4u(kFraction)) - vec4f(0x1p23 + 8.0);
}
fn last_half(word: u32) -> vec4f {
  return first_half(word >> 16u);
}

// The first four, times kSpread, which saves the shifts.
const kSpread = vec4f(1.0, 0x1p4, 0x1p8, 0x1p12);
fn spread_half(word: u32) -> vec4f {
  let elements = vec4u(word) & vec4u(0xfu, 0xf0u, 0xf00u, 0xf000u);
  return bitcast<vec4f>(elements | vec4u(kFraction)) - (vec4f(0x1p23) + 8.0 * kSpread);
}

fn scale_at(word: u32, n: u32) -> f32 {
  return f32(scales[p.s_first + word / p.group_words * p.s_row + n]);
}

fn store(m: u32, n: u32, sum: f32) {
  let at = m * p.y_row + p.y_first + n;
  var value = sum;
  if ((p.flags & kHasBias) != 0u) {
    value += f32(bias[p.bias_first + m * p.bias_row + n]);
  }
  if ((p.flags & kAddToY) != 0u) {
    value += f32(y[at]);
  }
  y[at] = T(value);
}
