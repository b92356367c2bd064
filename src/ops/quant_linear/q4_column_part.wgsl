// SPDX-License-Identifier: BSD-3-Clause
// 4-bit linear layers for adapters that run invocations on a CPU: one invocation makes four columns
// of a few rows of y from registers alone, without workgroup memory, barriers, or arrays, which
// some of these adapters keep in memory. Loads of x are the same in all invocations, and none
// leaves early, so that they stay scalar.
// With kGated two of the columns are gates of the two others, and y has half as many columns:
// y[m, n] = g * sigmoid(g) * u with g = column n and u = column n + p.n / 2.
// Prelude: that of the part, and kGated.
//#include "ops/quant_linear/q4_part.wgsl"
//#include "ops/quant_linear/swiglu_part.wgsl"

const kThreads = 16u;
const kTile = select(4u, 2u, kGated) * kThreads; // columns of y

struct Place {
  m: u32, // the first row
  n: u32, // the first of its columns of y, kThreads apart
  columns: vec4u, // rows of the weight, those behind the last repeating it
  weights: vec4u, // where their rows start, in loads
}

fn place_of(group: u32, lane: u32, rows: u32) -> Place {
  let all = select(p.n, p.n / 2u, kGated);
  let tiles = (all + kTile - 1u) / kTile;
  let n = group % tiles * kTile + lane;
  var columns = vec4u(n) + vec4u(0u, kThreads, 2u * kThreads, 3u * kThreads);
  if (kGated) {
    columns = min(columns.xyxy, vec4u(all - 1u)) + vec4u(0u, 0u, all, all);
  }
  columns = min(columns, vec4u(p.n - 1u));
  return Place(group / tiles * rows, n, columns, (columns * p.w_row + p.w_first) / kWords);
}

// Word i of a load of each column, with the sign of its last element turned.
fn words_of(a: W, b: W, c: W, d: W, i: u32) -> vec4u {
  let words = vec4u(word_of(a, i), word_of(b, i), word_of(c, i), word_of(d, i));
  if (swapped) {
    let low = vec4u(0x0f0f0f0fu);
    return ((words & low) << vec4u(4u)) ^ ((words >> vec4u(4u)) & low) ^ vec4u(0x80000000u);
  }
  return words ^ vec4u(0x80000000u);
}

// The weights of four elements of k, a column of the matrix for each, times a power of 16 each:
// they are masked and not shifted, and kFirst and kLast make up for it in x.
const kFirst = vec4f(1.0, 0x1p-4, 0x1p-8, 0x1p-12);
const kLast = vec4f(0x1p-16, 0x1p-20, 0x1p-24, 0x1p-28);

fn first_quad(words: vec4u) -> mat4x4f {
  return mat4x4f(masked(words, 0xfu) - vec4f(8.0), masked(words, 0xf0u) - vec4f(0x8p4),
                 masked(words, 0xf00u) - vec4f(0x8p8), masked(words, 0xf000u) - vec4f(0x8p12));
}
fn last_quad(words: vec4u) -> mat4x4f {
  return mat4x4f(masked(words, 0xf0000u) - vec4f(0x8p16), masked(words, 0xf00000u) - vec4f(0x8p20),
                 masked(words, 0xf000000u) - vec4f(0x8p24), masked(words, 0xf0000000u));
}
fn masked(words: vec4u, mask: u32) -> vec4f {
  return vec4f(bitcast<vec4i>(words & vec4u(mask)));
}

// Walks along the groups of a row: a division would be slow.
struct Walk {
  scale_row: u32,
  next: u32, // word at which the next group starts
}

fn scales_of(walk: Walk, columns: vec4u) -> vec4f {
  let at = columns + vec4u(walk.scale_row);
  return vec4f(f32(scales[at.x]), f32(scales[at.y]), f32(scales[at.z]), f32(scales[at.w]));
}
fn after(walk: Walk, word: u32) -> Walk {
  let done = word == walk.next;
  return Walk(walk.scale_row + select(0u, p.s_row, done),
              walk.next + select(0u, p.group_words, done));
}

fn store_row(place: Place, m: u32, sums: vec4f) {
  if (kGated) {
    store_gated(m, place.n, sums.x, sums.z);
    store_gated(m, place.n + kThreads, sums.y, sums.w);
  } else if (m < p.m) {
    store_column(m, place.n, sums.x);
    store_column(m, place.n + kThreads, sums.y);
    store_column(m, place.n + 2u * kThreads, sums.z);
    store_column(m, place.n + 3u * kThreads, sums.w);
  }
}
fn store_column(m: u32, n: u32, sum: f32) {
  if (n < p.n) {
    store(m, n, sum);
  }
}
fn store_gated(m: u32, n: u32, gate: f32, up: f32) {
  if (m < p.m && n < p.n / 2u) {
    y[m * p.y_row + p.y_first + n] = T(swiglu(gate, up));
  }
}
