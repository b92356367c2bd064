// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer for adapters that run invocations on a CPU: one invocation makes kRows x
// kColumns elements of y from registers alone, without workgroup memory or barriers. Loads of x are
// the same in all invocations, and no invocation leaves early, so that they stay scalar.
// Prelude: that of the part, kRows and kColumns.
//#include "ops/quant_linear/q4_part.wgsl"

const kThreads = 16u;
const kTile = kThreads * kColumns;
const kSums = kRows * kColumns;

fn add_products(sum: f32, a: vec4f, b: vec4f) -> f32 {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tiles = (p.n + kTile - 1u) / kTile;
  let tile = group.x + group.y * groups.x;
  let m0 = tile / tiles * kRows;
  let n0 = tile % tiles * kTile + lane;

  // What lies behind the last row or column repeats it and is not stored.
  var begin: array<u32, kColumns>;
  for (var c = 0u; c < kColumns; c += 1u) {
    begin[c] = (min(n0 + c * kThreads, p.n - 1u) * p.w_row + p.w_first) / kWords;
  }
  var rows: array<u32, kRows>;
  for (var r = 0u; r < kRows; r += 1u) {
    rows[r] = min(m0 + r, p.m - 1u) * p.x_row + p.x_first;
  }
  var sums = array<f32, kSums>();
  var scale_row = p.s_first;
  var next = p.group_words; // where the next group starts: a division would be slow
  for (var i = 0u; i < p.words; i += kWords) {
    var loads: array<W, kColumns>;
    for (var c = 0u; c < kColumns; c += 1u) {
      loads[c] = weight[begin[c] + i / kWords];
    }
    var part = array<f32, kSums>();
    for (var j = 0u; j < kWords; j += 1u) {
      var words: array<u32, kColumns>;
      for (var c = 0u; c < kColumns; c += 1u) {
        words[c] = ordered(word_of(loads[c], j));
      }
      for (var r = 0u; r < kRows; r += 1u) {
        let row = rows[r] + 2u * (i + j);
        let a = vec4f(x[row]);
        let b = vec4f(x[row + 1u]);
        for (var c = 0u; c < kColumns; c += 1u) {
          let s = c * kRows + r;
          part[s] = add_products(add_products(part[s], a, first_half(words[c])), b,
                                 last_half(words[c]));
        }
      }
    }
    for (var c = 0u; c < kColumns; c += 1u) {
      let scale = f32(scales[scale_row + min(n0 + c * kThreads, p.n - 1u)]);
      for (var r = 0u; r < kRows; r += 1u) {
        sums[c * kRows + r] += part[c * kRows + r] * scale;
      }
    }
    let done = i + kWords == next;
    scale_row += select(0u, p.s_row, done);
    next += select(0u, p.group_words, done);
  }
  for (var c = 0u; c < kColumns; c += 1u) {
    for (var r = 0u; r < kRows; r += 1u) {
      let n = n0 + c * kThreads;
      if (n < p.n && m0 + r < p.m) {
        store(m0 + r, n, sums[c * kRows + r]);
      }
    }
  }
}
