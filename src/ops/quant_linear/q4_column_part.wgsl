// SPDX-License-Identifier: BSD-3-Clause
// 4-bit linear layers for adapters that run invocations on a CPU: one invocation makes a few columns
// of a few rows of y from registers alone, without workgroup memory, barriers, or arrays, which
// some of these adapters keep in memory. Loads of x are the same in all invocations, and none
// leaves early, so that they stay scalar.
// With kGated one half of the columns are gates of the other, and y has half as many columns:
// y[m, n] = g * sigmoid(g) * u with g = column n and u = column n + p.n / 2.
// Prelude: that of the part, and kGated.
//#include "ops/quant_linear/q4_part.wgsl"
//#include "ops/quant_linear/swiglu_part.wgsl"

const kTile = select(64u, 32u, kGated); // columns of y of a workgroup

// The first column of y of a workgroup, and which block of rows it makes.
fn tile_of(group: u32) -> vec2u {
  let tiles = (select(p.n, p.n / 2u, kGated) + kTile - 1u) / kTile;
  return vec2u(group % tiles * kTile, group / tiles);
}

// Walks along the groups of a row: a division would be slow.
struct Walk {
  scale_row: u32,
  next: u32, // word at which the next group starts
}

fn after(walk: Walk, word: u32) -> Walk {
  let done = word == walk.next;
  return Walk(walk.scale_row + select(0u, p.s_row, done),
              walk.next + select(0u, p.group_words, done));
}

// Rows are there; columns behind the last are not stored.
fn store_column(m: u32, n: u32, sum: f32) {
  if (n < p.n) {
    store(m, n, sum);
  }
}
fn store_gated(m: u32, n: u32, gate: f32, up: f32) {
  if (n < p.n / 2u) {
    y[m * p.y_row + p.y_first + n] = T(swiglu(gate, up));
  }
}
