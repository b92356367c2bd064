// SPDX-License-Identifier: BSD-3-Clause
// Attention with all scores in memory, step 1: scores[query][key] = q k' * scale + mask for the
// keys that the query sees. One thread a score; a row of scores has p.keys elements.
// Prelude: T, C, kDim4.
//#include "ops/attention/attention_part.wgsl"
@group(0) @binding(0) var<storage, read> q: array<vec4<T>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<C>>;
@group(0) @binding(2) var<storage, read> mask: array<T>; // anything unless masked
@group(0) @binding(3) var<storage, read> slots: array<i32>; // anything unless positioned
@group(0) @binding(4) var<storage, read_write> scores: array<f32>;

override masked: bool = false;

const kGroup = 64u;

@compute @workgroup_size(kGroup)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let key = id.x;
  let query = id.y + id.z * groups.y;
  let head = query / (p.rows * p.group);
  let r = query % (p.rows * p.group);
  if (head >= p.heads || key >= keys_of(position(), query_row(r))) {
    return;
  }
  let q_at = query_at(head, r);
  let k_at = head * p.kv_head + key * p.kv_row;
  var score = 0.0;
  for (var i = 0u; i < kDim4; i += 1u) {
    score += dot(vec4f(q[q_at + i]), vec4f(k[k_at + i]));
  }
  score *= p.scale;
  if (masked) {
    score += f32(mask[query_row(r) * p.mask_row + query_head(head, r) * p.mask_head + key]);
  }
  scores[query * p.keys + key] = min(score, kHighest);
}
