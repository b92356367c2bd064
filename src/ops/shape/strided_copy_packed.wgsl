// SPDX-License-Identifier: BSD-3-Clause
// The same for elements smaller than a word: four bytes or two halves in each, the first in the
// lowest bits, neither aligned in x nor in y. One thread a word of y, which is written whole.
// Elements without a source are p.fill, or with `keep` what y has there.
//#include "ops/common/linear_part.wgsl"
//#include "ops/shape/strided_part.wgsl"

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

override per_word: u32 = 4;
override keep: bool = false;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let word = linear_index(id, groups);
  if (word > (p.n - 1u) / per_word) {
    return;
  }
  let bits = 32u / per_word;
  let mask = (1u << bits) - 1u;
  var value = 0u;
  if (keep) {
    value = y[word];
  }
  let first = word * per_word;
  let count = min(per_word, p.n - first);
  for (var e = 0u; e < count; e += 1u) {
    let at = source_of(first + e);
    var element = p.fill;
    if (!windowed || at != kNoSource) {
      element = (x[at / per_word] >> (at % per_word * bits)) & mask;
    } else if (keep) {
      continue;
    }
    let shift = e * bits;
    value = (value & ~(mask << shift)) | (element << shift);
  }
  y[word] = value;
}
