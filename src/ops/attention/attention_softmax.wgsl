// SPDX-License-Identifier: BSD-3-Clause
// Attention with all scores in memory, step 2: the scores that a query sees become weights, in
// place. One workgroup a query.
//#include "ops/attention/attention_part.wgsl"
@group(0) @binding(0) var<storage, read> slots: array<i32>; // anything unless positioned
@group(0) @binding(1) var<storage, read_write> scores: array<f32>;

const kGroup = 64u;
var<workgroup> partials: array<f32, kGroup>;

@compute @workgroup_size(kGroup)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let query = group.x + group.y * groups.x;
  if (query >= p.rows * p.group * p.heads) {
    return;
  }
  let end = keys_of(position(), query_row(query % (p.rows * p.group)));
  let at = query * p.keys;
  var largest = kLowest;
  for (var key = index; key < end; key += kGroup) {
    largest = max(largest, scores[at + key]);
  }
  partials[index] = largest;
  workgroupBarrier();
  for (var i = 0u; i < kGroup; i += 1u) {
    largest = max(largest, partials[i]);
  }
  workgroupBarrier();
  var total = 0.0;
  for (var key = index; key < end; key += kGroup) {
    total += exp(scores[at + key] - largest);
  }
  partials[index] = total;
  workgroupBarrier();
  total = 0.0;
  for (var i = 0u; i < kGroup; i += 1u) {
    total += partials[i];
  }
  let inverse = select(0.0, 1.0 / total, total > 0.0);
  for (var key = index; key < end; key += kGroup) {
    scores[at + key] = exp(scores[at + key] - largest) * inverse;
  }
}
