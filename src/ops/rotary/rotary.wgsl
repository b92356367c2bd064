// SPDX-License-Identifier: BSD-3-Clause
// Rotates pairs of elements within each head of xq and xk: (a, b) becomes
// (a cos - b sin, b cos + a sin). The first p.rotated elements of a head are pairs, neighbours or
// halves apart; the others are copied. One thread a pair, first those of xq, then those of xk.
// Prelude: T (xq, xk) and F (cos, sin).
//#include "ops/common/linear_part.wgsl"

struct Params {
  q_pairs: u32, // of all of xq, counting two elements that are copied as a pair
  k_pairs: u32,
  q_heads: u32,
  k_heads: u32,
  dim: u32, // elements of a head
  rotated: u32,
  rows: u32, // positions in xq and xk, each p.q_heads or p.k_heads heads
  table_rows: u32,
  table_row: u32, // elements of a table from one row to the next
  table_step: u32, // from one pair to the next
  sin_from: u32, // where sin has its first pair
  slot: u32,
}

@group(0) @binding(0) var<storage, read> xq: array<T>;
@group(0) @binding(1) var<storage, read> xk: array<T>;
@group(0) @binding(2) var<storage, read> cosines: array<F>;
@group(0) @binding(3) var<storage, read> sines: array<F>;
@group(0) @binding(4) var<storage, read> slots: array<i32>; // anything unless positioned
@group(0) @binding(5) var<storage, read_write> yq: array<T>;
@group(0) @binding(6) var<storage, read_write> yk: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

override halves: bool = false; // a pair's second element is half of p.rotated further
override positioned: bool = false; // row 0 of x takes the table's row in a slot

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  var pair = linear_index(id, groups);
  let second = pair >= p.q_pairs;
  if (second) {
    pair -= p.q_pairs;
    if (pair >= p.k_pairs) {
      return;
    }
  }
  let in_head = p.dim / 2u;
  let head = pair / in_head; // of all positions
  let i = pair % in_head;
  let half = p.rotated / 2u;
  var at = vec2u(2u * i, 2u * i + 1u);
  if (halves && i < half) {
    at = vec2u(i, i + half);
  }
  at += head * p.dim;
  var x: vec2f;
  if (second) {
    x = vec2f(f32(xk[at.x]), f32(xk[at.y]));
  } else {
    x = vec2f(f32(xq[at.x]), f32(xq[at.y]));
  }
  if (i < half) {
    var row = head / select(p.q_heads, p.k_heads, second) % p.rows;
    if (positioned) {
      row += u32(clamp(slots[p.slot], 0, i32(p.table_rows - p.rows)));
    }
    let one = row * p.table_row + i * p.table_step;
    let other = one + select(0u, half, halves);
    let c = vec2f(f32(cosines[one]), f32(cosines[other]));
    let s = vec2f(f32(sines[one + p.sin_from]), f32(sines[other + p.sin_from]));
    x = vec2f(x.x * c.x - x.y * s.x, x.y * c.y + x.x * s.y);
  }
  if (second) {
    yk[at.x] = T(x.x);
    yk[at.y] = T(x.y);
  } else {
    yq[at.x] = T(x.x);
    yq[at.y] = T(x.y);
  }
}
