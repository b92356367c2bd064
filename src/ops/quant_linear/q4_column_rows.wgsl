// SPDX-License-Identifier: BSD-3-Clause
// Four rows and eight columns of y an invocation; see the part. Prelude: that of the part.
//
// x of a load's weights serves all columns, since llvmpipe checks each element that it loads. The
// columns go by pairs, one after the other: eight sums at a time are what vector registers hold.
//#include "ops/quant_linear/q4_column_part.wgsl"

const kThreads = 8u;

struct Pair {
  columns: vec2u, // rows of the weight, those behind the last repeating it
  weights: vec2u, // where they start, in loads
}

fn pair_of(n: u32) -> Pair {
  var columns = vec2u(n, n + kThreads);
  if (kGated) {
    columns = vec2u(min(n, p.n / 2u - 1u)) + vec2u(0u, p.n / 2u);
  }
  columns = min(columns, vec2u(p.n - 1u));
  return Pair(columns, (columns * p.w_row + p.w_first) / kWords);
}

// Word i of a load of both columns, with the sign of each element turned.
fn words_of(a: W, b: W, i: u32) -> vec2u {
  return vec2u(ordered(word_of(a, i)), ordered(word_of(b, i))) ^ vec2u(0x88888888u);
}

// Adds products of an element of k: that which `factor` moves to the top of the words, where a mask
// makes it a signed number without shifts, which SwiftShader lacks. kTop makes up for it.
const kTop = 0x1p-28;

fn added(words: vec2u, factor: u32, x: vec4f, sums: mat2x4f) -> mat2x4f {
  let w = vec2f(bitcast<vec2i>((words * factor) & vec2u(0xf0000000u)));
  return mat2x4f(sums[0] + w.x * x, sums[1] + w.y * x);
}

// The same for eight elements. A column of the matrix is one of y.
fn plus_word(sums: mat2x4f, words: vec2u, rows: vec4u, at: u32) -> mat2x4f {
  let first = quads_of_x(rows, at);
  let last = quads_of_x(rows, at + 1u);
  var s = added(words, 0x10000000u, first[0], sums);
  s = added(words, 0x1000000u, first[1], s);
  s = added(words, 0x100000u, first[2], s);
  s = added(words, 0x10000u, first[3], s);
  s = added(words, 0x1000u, last[0], s);
  s = added(words, 0x100u, last[1], s);
  s = added(words, 0x10u, last[2], s);
  return added(words, 1u, last[3], s);
}

// Four elements of k of all rows, a column of the matrix for each.
fn quads_of_x(rows: vec4u, at: u32) -> mat4x4f {
  return transpose(mat4x4f(vec4f(x[rows.x + at]), vec4f(x[rows.y + at]),
                           vec4f(x[rows.z + at]), vec4f(x[rows.w + at])));
}

fn plus_load(sums: mat2x4f, pair: Pair, rows: vec4u, i: u32, scale_row: u32) -> mat2x4f {
  let a = weight[pair.weights.x + i / kWords];
  let b = weight[pair.weights.y + i / kWords];
  var part = plus_word(mat2x4f(), words_of(a, b, 0u), rows, 2u * i);
  if (kWords > 1u) {
    part = plus_word(part, words_of(a, b, 1u), rows, 2u * i + 2u);
  }
  if (kWords > 2u) {
    part = plus_word(part, words_of(a, b, 2u), rows, 2u * i + 4u);
    part = plus_word(part, words_of(a, b, 3u), rows, 2u * i + 6u);
  }
  let at = pair.columns + scale_row;
  let scale = vec2f(f32(scales[at.x]), f32(scales[at.y])) * kTop;
  return mat2x4f(sums[0] + part[0] * scale.x, sums[1] + part[1] * scale.y);
}

fn store_pair(m: u32, n: u32, first: f32, second: f32) {
  if (kGated) {
    store_gated(m, n, first, second);
  } else {
    store_column(m, n, first);
    store_column(m, n + kThreads, second);
  }
}

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tile = tile_of(group.x + group.y * groups.x);
  let m = 4u * tile.y;
  let n = tile.x + lane;
  let step = select(2u, 1u, kGated) * kThreads; // from a pair to the next
  let a = pair_of(n);
  let b = pair_of(n + step);
  let c = pair_of(n + 2u * step);
  let d = pair_of(n + 3u * step);
  // Rows behind the last repeat it.
  let rows = min(vec4u(m) + vec4u(0u, 1u, 2u, 3u), vec4u(p.m - 1u)) * p.x_row + p.x_first;
  var walk = Walk(p.s_first, p.group_words);
  var sums_a = mat2x4f();
  var sums_b = mat2x4f();
  var sums_c = mat2x4f();
  var sums_d = mat2x4f();
  for (var i = 0u; i < p.words; i += kWords) {
    sums_a = plus_load(sums_a, a, rows, i, walk.scale_row);
    sums_b = plus_load(sums_b, b, rows, i, walk.scale_row);
    sums_c = plus_load(sums_c, c, rows, i, walk.scale_row);
    sums_d = plus_load(sums_d, d, rows, i, walk.scale_row);
    walk = after(walk, i + kWords);
  }
  // A loop that is not unrolled: a store is much code, which takes long to compile.
  let end = min(m + 4u, p.m);
  for (var row = m; row < end; row += 1u) {
    let r = row - m;
    store_pair(row, n, sums_a[0][r], sums_a[1][r]);
    store_pair(row, n + step, sums_b[0][r], sums_b[1][r]);
    store_pair(row, n + 2u * step, sums_c[0][r], sums_c[1][r]);
    store_pair(row, n + 3u * step, sums_d[0][r], sums_d[1][r]);
  }
}
