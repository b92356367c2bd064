// SPDX-License-Identifier: BSD-3-Clause
// y = softmax(q k' * scale) v for few queries and many keys: a workgroup takes kRows queries that
// read the same head of k, and one of p.splits runs of keys. A thread scores a key, then sums a
// vec4 of v over some keys. In parts, y gets for each split and query the vec4s of the sum and one
// of (largest score, total weight), and attention_merge.wgsl makes one of them.
// Prelude: kRows, a power of two up to 8; kDim4 is at most 64.
//#include "ops/attention/attention_inputs_part.wgsl"
override parts: bool = true; // otherwise there is one split, and y is the result

const kGroup = 64u;
const kFours = kGroup / 4u; // runs of four keys in a tile
const kSums = kGroup / kDim4; // threads that share a vec4 of v

var<workgroup> queries: array<vec4f, kRows * kDim4>;
var<workgroup> weights: array<f32, kRows * kGroup>; // scores before
var<workgroup> maxima: array<f32, kRows * kFours>;
var<workgroup> sums: array<vec4f, kGroup>;
var<workgroup> totals: array<f32, kGroup>;

@compute @workgroup_size(kGroup)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
  let block = block_of(group.y, kRows);
  let head = block.head;
  if (head >= p.heads) {
    return;
  }
  // Every split of the grid takes as many tiles; those behind the end have nothing to do.
  let longest = keys_of(block.first, p.rows - 1u);
  let each = ((longest + kGroup - 1u) / kGroup + p.splits - 1u) / p.splits * kGroup;
  let begin = group.x * each;
  if (begin >= longest) {
    return;
  }
  let to = min(begin + each, block.end);

  for (var i = index; i < kRows * kDim4; i += kGroup) {
    queries[i] = vec4f(q[query_at(head, query_of(block, i / kDim4)) + i % kDim4]) * p.scale;
  }
  let column = index % kDim4;
  let part = index / kDim4;
  var largest: array<f32, kRows>;
  var total: array<f32, kRows>;
  var sum: array<vec4f, kRows>;
  for (var r = 0u; r < kRows; r += 1u) {
    largest[r] = kLowest;
  }

  for (var tile = begin; tile < to; tile += kGroup) {
    let key = tile + index;
    let at = head * p.kv_head + min(key, to - 1u) * p.kv_row;
    workgroupBarrier();
    var scores = array<f32, kRows>(); // see docs/kernels.md
    for (var i = 0u; i < kDim4; i += 1u) {
      let x = vec4f(k[at + i]);
      for (var r = 0u; r < kRows; r += 1u) {
        scores[r] += dot(queries[r * kDim4 + i], x);
      }
    }
    for (var r = 0u; r < kRows; r += 1u) {
      let query = query_of(block, r);
      let seen = key < min(keys_of_query(block, query), to);
      scores[r] = select(kLowest, masked_score(scores[r], head, query, key), seen);
      weights[r * kGroup + index] = scores[r];
    }
    workgroupBarrier();
    for (var i = index; i < kRows * kFours; i += kGroup) {
      let start = i / kFours * kGroup + i % kFours;
      maxima[i] = max(max(weights[start], weights[start + kFours]),
                      max(weights[start + 2u * kFours], weights[start + 3u * kFours]));
    }
    workgroupBarrier();
    var shrink: array<f32, kRows>;
    for (var r = 0u; r < kRows; r += 1u) {
      var next = largest[r];
      for (var i = 0u; i < kFours; i += 1u) {
        next = max(next, maxima[r * kFours + i]);
      }
      shrink[r] = exp(largest[r] - next);
      largest[r] = next;
      let seen = key < min(keys_of_query(block, query_of(block, r)), to);
      weights[r * kGroup + index] = select(0.0, exp(scores[r] - next), seen);
      total[r] *= shrink[r];
      sum[r] *= shrink[r];
    }
    workgroupBarrier();
    if (part < kSums) {
      for (var i = part; i < kFours; i += kSums) {
        let keys = min(tile + 4u * i + vec4u(0u, 1u, 2u, 3u), vec4u(to - 1u));
        let v_at = head * p.kv_head + keys * p.kv_row + column;
        let a = vec4f(v[v_at.x]);
        let b = vec4f(v[v_at.y]);
        let c = vec4f(v[v_at.z]);
        let d = vec4f(v[v_at.w]);
        for (var r = 0u; r < kRows; r += 1u) {
          let start = r * kGroup + 4u * i;
          let w = vec4f(weights[start], weights[start + 1u], weights[start + 2u],
                        weights[start + 3u]);
          sum[r] += w.x * a + w.y * b + w.z * c + w.w * d;
          total[r] += dot(w, vec4f(1.0));
        }
      }
    }
  }

  for (var r = 0u; r < kRows; r += 1u) {
    workgroupBarrier();
    sums[index] = sum[r];
    totals[index] = total[r];
    workgroupBarrier();
    if (index < kDim4 && block.r0 + r <= block.last) {
      var whole = sums[index];
      var weight = totals[index];
      for (var i = 1u; i < kSums; i += 1u) {
        whole += sums[index + i * kDim4];
        weight += totals[index + i * kDim4];
      }
      if (parts) {
        let queries = p.heads * p.rows * p.group;
        let at = (group.x * queries + query_index(head, block.r0 + r)) * (kDim4 + 1u);
        y[at + index] = vec4<Y>(whole);
        if (index == 0u) {
          y[at + kDim4] = vec4<Y>(vec4f(largest[r], weight, 0.0, 0.0));
        }
      } else {
        let inverse = select(0.0, 1.0 / weight, weight > 0.0);
        y[query_at(head, block.r0 + r) + index] = vec4<Y>(whole * inverse);
      }
    }
  }
}
