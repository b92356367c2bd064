// SPDX-License-Identifier: BSD-3-Clause
// Attention with all scores in memory, step 3: y[query] = the sum of v by weight over the keys that
// the query sees. One thread a vec4 of y. Prelude: C (v), Y (y), kDim4.
//#include "ops/attention/attention_part.wgsl"
//#include "ops/common/linear_part.wgsl"
@group(0) @binding(0) var<storage, read> weights: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<vec4<C>>;
@group(0) @binding(2) var<storage, read> slots: array<i32>; // anything unless positioned
@group(0) @binding(3) var<storage, read_write> y: array<vec4<Y>>;

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  let query = i / kDim4;
  let head = query / (p.rows * p.group);
  let r = query % (p.rows * p.group);
  if (head >= p.heads) {
    return;
  }
  let end = keys_of(position(), query_row(r));
  var sum = vec4f();
  for (var key = 0u; key < end; key += 1u) {
    sum += weights[query * p.keys + key] *
           vec4f(v[head * p.kv_head + key * p.kv_row + i % kDim4]);
  }
  y[query_at(head, r) + i % kDim4] = vec4<Y>(sum);
}
