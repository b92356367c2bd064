// SPDX-License-Identifier: BSD-3-Clause
// y = softmax(q k' * scale) v for many queries: a workgroup takes a tile of 8 kEach queries that
// read the same head of k, and streams over tiles of 32 keys. Slices of eight vec4s of q, k and v
// pass through workgroup memory; a thread scores kEach queries by 4 keys and sums kEach rows of y.
// Prelude: that of the part, and kEach, 1 to 4.
//#include "ops/attention/attention_inputs_part.wgsl"
const kGroup = 64u;
const kTile = 32u;
const kSlice = 8u;
const kQueries = kSlice * kEach;
const kStride = kSlice + 1u; // so that neighbouring rows lie in different banks
const kSlices = (kDim4 + kSlice - 1u) / kSlice;

var<workgroup> left: array<vec4f, kQueries * kStride>; // q, then weights: [query][key / 4]
var<workgroup> right: array<vec4f, kTile * kStride>; // k, then v
var<workgroup> shared4: array<vec4f, kGroup>; // one value for each of a thread's queries

fn shared_max(row: u32) -> vec4f {
  var four = shared4[row * kSlice];
  for (var i = 1u; i < kSlice; i += 1u) {
    four = max(four, shared4[row * kSlice + i]);
  }
  return four;
}

fn shared_sum(row: u32) -> vec4f {
  var four = shared4[row * kSlice];
  for (var i = 1u; i < kSlice; i += 1u) {
    four += shared4[row * kSlice + i];
  }
  return four;
}

@compute @workgroup_size(kGroup)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let block = block_of(group.x + group.y * groups.x, kQueries);
  let head = block.head;
  if (head >= p.heads) {
    return;
  }
  let row = index / kSlice; // queries row + 8 i of the block
  let column = index % kSlice; // keys 4 column + j; vec4s column + 8 slice

  var sum: array<vec4f, kEach * kSlices>;
  var largest = vec4f(kLowest);
  var total = vec4f();
  for (var tile = 0u; tile < block.end; tile += kTile) {
    var scores = array<vec4f, kEach>(); // see docs/kernels.md
    for (var slice = 0u; slice < kSlices; slice += 1u) {
      workgroupBarrier();
      for (var i = index; i < kTile * kSlice; i += kGroup) {
        let at = i / kSlice;
        let d4 = slice * kSlice + i % kSlice;
        var a = vec4f();
        var b = vec4f();
        if (d4 < kDim4) {
          a = vec4f(q[query_at(head, query_of(block, at)) + d4]) * p.scale;
          b = vec4f(k[head * p.kv_head + min(tile + at, block.end - 1u) * p.kv_row + d4]);
        }
        if (at < kQueries) {
          left[at * kStride + i % kSlice] = a;
        }
        right[(at % 4u * kSlice + at / 4u) * kStride + i % kSlice] = b;
      }
      workgroupBarrier();
      for (var d = 0u; d < kSlice; d += 1u) {
        let k0 = right[column * kStride + d];
        let k1 = right[(kSlice + column) * kStride + d];
        let k2 = right[(2u * kSlice + column) * kStride + d];
        let k3 = right[(3u * kSlice + column) * kStride + d];
        for (var i = 0u; i < kEach; i += 1u) {
          let x = left[(row + i * kSlice) * kStride + d];
          scores[i] += vec4f(dot(x, k0), dot(x, k1), dot(x, k2), dot(x, k3));
        }
      }
    }

    let keys = tile + 4u * column + vec4u(0u, 1u, 2u, 3u);
    var highest = vec4f();
    for (var i = 0u; i < kEach; i += 1u) {
      let r = query_of(block, row + i * kSlice);
      let x = scores[i];
      let seen = keys < vec4u(keys_of_query(block, r));
      let all = vec4f(masked_score(x.x, head, r, keys.x), masked_score(x.y, head, r, keys.y),
                      masked_score(x.z, head, r, keys.z), masked_score(x.w, head, r, keys.w));
      scores[i] = select(vec4f(kLowest), all, seen);
      highest[i] = max(max(scores[i].x, scores[i].y), max(scores[i].z, scores[i].w));
    }
    shared4[index] = highest;
    workgroupBarrier();
    let next = max(largest, shared_max(row));
    let shrink = exp(largest - next);
    largest = next;
    total *= shrink;
    for (var i = 0u; i < kEach; i += 1u) {
      let seen = keys < vec4u(keys_of_query(block, query_of(block, row + i * kSlice)));
      let weights = select(vec4f(), exp(scores[i] - next[i]), seen);
      left[(row + i * kSlice) * kStride + column] = weights;
      total[i] += dot(weights, vec4f(1.0));
    }

    for (var slice = 0u; slice < kSlices; slice += 1u) {
      if (slice > 0u) {
        workgroupBarrier();
      }
      for (var i = index; i < kTile * kSlice; i += kGroup) {
        let d4 = slice * kSlice + i % kSlice;
        var b = vec4f();
        if (d4 < kDim4) {
          b = vec4f(v[head * p.kv_head + min(tile + i / kSlice, block.end - 1u) * p.kv_row + d4]);
        }
        right[i / kSlice * kStride + i % kSlice] = b;
      }
      workgroupBarrier();
      for (var i = 0u; i < kEach; i += 1u) {
        sum[kEach * slice + i] *= shrink[i];
      }
      for (var four = 0u; four < kTile / 4u; four += 1u) {
        let v0 = right[4u * four * kStride + column];
        let v1 = right[(4u * four + 1u) * kStride + column];
        let v2 = right[(4u * four + 2u) * kStride + column];
        let v3 = right[(4u * four + 3u) * kStride + column];
        for (var i = 0u; i < kEach; i += 1u) {
          let w = left[(row + i * kSlice) * kStride + four];
          sum[kEach * slice + i] += w.x * v0 + w.y * v1 + w.z * v2 + w.w * v3;
        }
      }
    }
  }

  workgroupBarrier();
  shared4[index] = total;
  workgroupBarrier();
  let whole = shared_sum(row);
  let inverse = select(vec4f(), 1.0 / whole, whole > vec4f());
  for (var i = 0u; i < kEach; i += 1u) {
    let r = block.r0 + row + i * kSlice;
    for (var slice = 0u; slice < kSlices; slice += 1u) {
      let to = slice * kSlice + column;
      if (r <= block.last && to < kDim4) {
        y[query_at(head, r) + to] = vec4<Y>(sum[kEach * slice + i] * inverse[i]);
      }
    }
  }
}
