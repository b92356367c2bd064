// SPDX-License-Identifier: BSD-3-Clause
// What attention kernels read. Prelude: T (q, mask), C (k and v), Y (y), and kDim4, a head's vec4s.
//#include "ops/attention/attention_part.wgsl"
@group(0) @binding(0) var<storage, read> q: array<vec4<T>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<C>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<C>>;
@group(0) @binding(3) var<storage, read> mask: array<T>; // anything unless masked
@group(0) @binding(4) var<storage, read> slots: array<i32>; // anything unless positioned
@group(0) @binding(5) var<storage, read_write> y: array<vec4<Y>>;

override masked: bool = false; // mask is added to the scores

// A score as it counts: with its mask, never above what can be subtracted.
fn masked_score(score: f32, head: u32, r: u32, key: u32) -> f32 {
  if (!masked) {
    return min(score, kHighest);
  }
  let at = query_row(r) * p.mask_row + query_head(head, r) * p.mask_head + min(key, p.keys - 1u);
  return min(score + f32(mask[at]), kHighest);
}
