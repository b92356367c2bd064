// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer for adapters that run invocations on a CPU: one invocation makes kRows
// elements of a column of y from registers alone, without workgroup memory or barriers.
// Prelude: that of the part, and kRows.
//#include "ops/quant_linear/q4_part.wgsl"

const kThreads = 64u;

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tiles = (p.n + kThreads - 1u) / kThreads;
  let tile = group.x + group.y * groups.x;
  let m0 = tile / tiles * kRows;
  if (m0 >= p.m) {
    return;
  }
  // What lies behind the last row or column repeats it and is not stored.
  let column = tile % tiles * kThreads + lane;
  let n = min(column, p.n - 1u);
  let row = (n * p.w_row + p.w_first) / kWords;

  var sums: array<f32, kRows>;
  for (var start = 0u; start < p.words; start += p.group_words) {
    let end = min(start + p.group_words, p.words);
    var part = array<f32, kRows>();
    for (var i = start; i < end; i += kWords) {
      let load = weight[row + i / kWords];
      for (var c = 0u; c < kWords; c += 1u) {
        let word = ordered(word_of(load, c));
        let first = first_half(word);
        let last = last_half(word);
        for (var r = 0u; r < kRows; r += 1u) {
          let at = min(m0 + r, p.m - 1u) * p.x_row + p.x_first + 2u * (i + c);
          part[r] += dot(vec4f(x[at]), first) + dot(vec4f(x[at + 1u]), last);
        }
      }
    }
    let scale = scale_at(start, n);
    for (var r = 0u; r < kRows; r += 1u) {
      sums[r] += part[r] * scale;
    }
  }
  for (var r = 0u; r < kRows; r += 1u) {
    if (column < p.n && m0 + r < p.m) {
      store(m0 + r, column, sums[r]);
    }
  }
}
