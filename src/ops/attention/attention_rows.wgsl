// SPDX-License-Identifier: BSD-3-Clause
// y = softmax(q k' * scale) v, streaming over four keys at a time, one thread a query. No barriers,
// and all threads of a workgroup read the same k and v: right for adapters that run on a CPU.
//#include "ops/attention/attention_inputs_part.wgsl"
override wg_size: u32 = 8;

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let block = block_of(group.x + group.y * groups.x, wg_size);
  let head = block.head;
  if (head >= p.heads) {
    return;
  }
  let r = query_of(block, index); // surplus threads repeat the last
  let own_end = keys_of_query(block, r);
  let q_at = query_at(head, r);

  var query: array<vec4f, kDim4>;
  var sum: array<vec4f, kDim4>;
  for (var i = 0u; i < kDim4; i += 1u) {
    query[i] = vec4f(q[q_at + i]) * p.scale;
    sum[i] = vec4f();
  }
  var largest = kLowest;
  var total = 0.0;
  for (var key = 0u; key < block.end; key += 4u) {
    let keys = vec4u(key, key + 1u, key + 2u, key + 3u);
    let at = head * p.kv_head + min(keys, vec4u(block.end - 1u)) * p.kv_row;
    var scores = vec4f();
    for (var i = 0u; i < kDim4; i += 1u) {
      let x = query[i];
      scores += vec4f(dot(x, vec4f(k[at.x + i])), dot(x, vec4f(k[at.y + i])),
                      dot(x, vec4f(k[at.z + i])), dot(x, vec4f(k[at.w + i])));
    }
    scores = vec4f(masked_score(scores.x, head, r, keys.x), masked_score(scores.y, head, r, keys.y),
                   masked_score(scores.z, head, r, keys.z), masked_score(scores.w, head, r, keys.w));
    let seen = keys < vec4u(own_end);
    let counted = select(vec4f(kLowest), scores, seen);
    let highest = max(max(counted.x, counted.y), max(counted.z, counted.w));
    let next = max(largest, highest);
    let shrink = exp(largest - next);
    let weights = select(vec4f(), exp(counted - next), seen);
    largest = next;
    total = total * shrink + dot(weights, vec4f(1.0));
    for (var i = 0u; i < kDim4; i += 1u) {
      sum[i] = sum[i] * shrink + weights.x * vec4f(v[at.x + i]) + weights.y * vec4f(v[at.y + i]) +
               weights.z * vec4f(v[at.z + i]) + weights.w * vec4f(v[at.w + i]);
    }
  }
  if (block.r0 + index <= block.last) {
    let inverse = select(0.0, 1.0 / total, total > 0.0);
    for (var i = 0u; i < kDim4; i += 1u) {
      y[q_at + i] = vec4<Y>(sum[i] * inverse);
    }
  }
}
