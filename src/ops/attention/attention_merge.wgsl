// SPDX-License-Identifier: BSD-3-Clause
// Makes y of the parts that attention_split.wgsl leaves. One workgroup a query; p.splits is at most
// kGroup. Prelude: Y (y) and kDim4, a head's vec4s, at most 64.
//#include "ops/attention/attention_part.wgsl"
@group(0) @binding(0) var<storage, read> parts: array<vec4f>;
@group(0) @binding(1) var<storage, read> slots: array<i32>; // anything unless positioned
@group(0) @binding(2) var<storage, read_write> y: array<vec4<Y>>;

const kGroup = 64u;
const kSums = kGroup / kDim4; // threads that share a vec4 of y

var<workgroup> maxima: array<f32, kGroup>;
var<workgroup> shares: array<f32, kGroup>;
var<workgroup> totals: array<f32, kGroup>;
var<workgroup> sums: array<vec4f, kGroup>;

@compute @workgroup_size(kGroup)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let query = group.x + group.y * groups.x;
  let queries = p.rows * p.group * p.heads;
  if (query >= queries) {
    return;
  }
  let tiles = (keys_of(position(), p.rows - 1u) + kGroup - 1u) / kGroup;
  let each = (tiles + p.splits - 1u) / p.splits;
  let used = (tiles + each - 1u) / each;

  // What each part contributes, scaled to the largest score of all.
  let stride = queries * (kDim4 + 1u);
  let start = query * (kDim4 + 1u);
  var mine = vec4f(kLowest, 0.0, 0.0, 0.0);
  if (index < used) {
    mine = parts[index * stride + start + kDim4];
  }
  maxima[index] = mine.x;
  workgroupBarrier();
  var largest = kLowest;
  for (var i = 0u; i < used; i += 1u) {
    largest = max(largest, maxima[i]);
  }
  shares[index] = exp(mine.x - largest);
  totals[index] = mine.y * shares[index];
  workgroupBarrier();

  var sum = vec4f();
  if (index / kDim4 < kSums) {
    for (var i = index / kDim4; i < used; i += kSums) {
      sum += shares[i] * parts[i * stride + start + index % kDim4];
    }
  }
  sums[index] = sum;
  workgroupBarrier();
  if (index < kDim4) {
    var total = 0.0;
    for (var i = 0u; i < used; i += 1u) {
      total += totals[i];
    }
    for (var i = 1u; i < kSums; i += 1u) {
      sum += sums[index + i * kDim4];
    }
    let inverse = select(0.0, 1.0 / total, total > 0.0);
    let head = query / (p.rows * p.group);
    y[query_at(head, query % (p.rows * p.group)) + index] = vec4<Y>(sum * inverse);
  }
}
