// SPDX-License-Identifier: BSD-3-Clause
// One row and four columns of y an invocation; see the part. Prelude: that of the part.
//#include "ops/quant_linear/q4_column_part.wgsl"

const kThreads = kTile / select(4u, 2u, kGated); // the columns of an invocation are so far apart

struct Place {
  columns: vec4u, // rows of the weight, those behind the last repeating it
  weights: vec4u, // where they start, in loads
}

fn place_of(n: u32) -> Place {
  var columns = vec4u(n) + vec4u(0u, kThreads, 2u * kThreads, 3u * kThreads);
  if (kGated) {
    let half = p.n / 2u;
    columns = min(columns.xyxy, vec4u(half - 1u)) + vec4u(0u, 0u, half, half);
  }
  columns = min(columns, vec4u(p.n - 1u));
  return Place(columns, (columns * p.w_row + p.w_first) / kWords);
}

// Word i of a load of each column, with the sign of its last element turned.
fn words_of(a: W, b: W, c: W, d: W, i: u32) -> vec4u {
  let words = vec4u(ordered(word_of(a, i)), ordered(word_of(b, i)),
                    ordered(word_of(c, i)), ordered(word_of(d, i)));
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

fn products(words: vec4u, at: u32) -> vec4f {
  return first_quad(words) * (vec4f(x[at]) * kFirst) +
         last_quad(words) * (vec4f(x[at + 1u]) * kLast);
}

fn scales_of(walk: Walk, columns: vec4u) -> vec4f {
  let at = columns + vec4u(walk.scale_row);
  return vec4f(f32(scales[at.x]), f32(scales[at.y]), f32(scales[at.z]), f32(scales[at.w]));
}

fn store_row(m: u32, n: u32, sums: vec4f) {
  if (m >= p.m) {
    return;
  }
  if (kGated) {
    store_gated(m, n, sums.x, sums.z);
    store_gated(m, n + kThreads, sums.y, sums.w);
  } else {
    store_column(m, n, sums.x);
    store_column(m, n + kThreads, sums.y);
    store_column(m, n + 2u * kThreads, sums.z);
    store_column(m, n + 3u * kThreads, sums.w);
  }
}

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tile = tile_of(group.x + group.y * groups.x);
  let m = tile.y;
  let place = place_of(tile.x + lane);
  let row = min(m, p.m - 1u) * p.x_row + p.x_first;
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
  store_row(m, tile.x + lane, sums);
}
