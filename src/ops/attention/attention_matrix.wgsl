// SPDX-License-Identifier: BSD-3-Clause
// y = softmax(q k' * scale) v for many queries by matrix units: f16 times f16, sums in f32. A
// workgroup takes kQueries queries that read the same head of k and streams over tiles of kKeys
// keys. kSplit subgroups share kM queries: they divide keys among them for scores, and columns of v
// for y. In between kPer neighbouring threads weigh the scores of a query.
//
// Sums for y stay in matrices, which cannot be scaled by rows; so weights are relative to a score
// that is not always the largest so far: only when one exceeds it by kSlack do the sums go through
// workgroup memory to be scaled. e^kSlack is far from what f16 holds.
//
// Prelude: that of the part, kM, kN and kK, the sides of matrices, kLanes, the lanes of a subgroup,
// kSplit and kSubgroups, the number of them that do not share queries. A head is a whole number of
// matrices, at most eight of kN for a subgroup, and of chunks that a workgroup stages.
//#include "ops/attention/attention_sums_part.wgsl"
const kPer = kPlaceThreads / kM;
const kOctets = kKeys / 8u / kPer; // of keys that a thread weighs in a tile
const kSums = kDim / kN / kSplit; // matrices of y that a subgroup makes
const kSlack = 5.0;

var<workgroup> grown: atomic<u32>; // the last tile where a score exceeded kSlack

struct Query {
  row: u32, // in the workgroup
  head: u32,
  r: u32,
  end: u32, // of the keys it sees
}

fn keys_from(key0: u32, quad: u32) -> vec4u {
  return key0 + 4u * quad + vec4u(0u, 1u, 2u, 3u);
}

// Its scores with four keys of a tile that starts at key0.
fn scores_of(query: Query, key0: u32, quad: u32) -> vec4f {
  let x = bitcast<vec4f>(tile[scores_at(query.row / kM, quad / kFours) +
                              query.row % kM * kFours + quad % kFours]);
  let keys = keys_from(key0, quad);
  let all = vec4f(masked_score(x.x, query.head, query.r, keys.x),
                  masked_score(x.y, query.head, query.r, keys.y),
                  masked_score(x.z, query.head, query.r, keys.z),
                  masked_score(x.w, query.head, query.r, keys.w));
  return select(vec4f(kLowest), all, keys < vec4u(query.end));
}

fn weights_of(query: Query, key0: u32, quad: u32, base: f32) -> vec4<f16> {
  let weights = exp(scores_of(query, key0, quad) - base);
  return vec4<f16>(select(vec4f(), weights, keys_from(key0, quad) < vec4u(query.end)));
}

@compute @workgroup_size(kThreads)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let block = block_of(group.x + group.y * groups.x, kQueries);
  let head = block.head;
  if (head >= p.heads) {
    return;
  }
  let keys = Keys(head * p.kv_head, block.end);
  let subgroup = index / kLanes;
  let place = Place(subgroup / kSplit, subgroup % kSplit, index % kLanes);
  let row = index / kPer;
  let r = query_of(block, row);
  let query = Query(row, head, r, keys_of_query(block, r));

  for (var i = index; i < kQueries * kChunks; i += step()) {
    let at_q = query_at(head, query_of(block, i / kChunks)) + 2u * (i % kChunks);
    tile[at(i / kChunks, i % kChunks, kQueries, kWideK)] =
        halves(vec4f(q[at_q]) * p.scale, vec4f(q[at_q + 1u]) * p.scale);
  }
  for (var i = index; i < kKeys * kChunks; i += step()) {
    stage_k(i, fetch_k(keys, 0u, i));
  }
  var next = fetch(keys, kKeys, 0u, index);
  workgroupBarrier();

  var s0 = Sum();
  var s1 = Sum();
  var s2 = Sum();
  var s3 = Sum();
  var s4 = Sum();
  var s5 = Sum();
  var s6 = Sum();
  var s7 = Sum();
  var base = kLowest;
  var total = 0.0;
  for (var key0 = 0u; key0 < keys.end; key0 += kKeys) {
    score(place);
    workgroupBarrier();

    var highest = kLowest;
    for (var i = 0u; i < kOctets; i += 1u) {
      let quad = 2u * (index % kPer * kOctets + i);
      let four = max(scores_of(query, key0, quad), scores_of(query, key0, quad + 1u));
      highest = max(highest, max(max(four.x, four.y), max(four.z, four.w)));
    }
    for (var i = 1u; i < kPer; i *= 2u) {
      highest = max(highest, subgroupShuffleXor(highest, i));
    }
    var shrink = 1.0;
    if (key0 == 0u || highest > base + kSlack) {
      let raised = max(base, highest);
      shrink = exp(base - raised);
      base = raised;
      atomicMax(&grown, key0);
    }
    if (index % kPer == 0u) {
      factors[row] = shrink;
    }
    total *= shrink;
    for (var i = 0u; i < kOctets; i += 1u) {
      let octet = index % kPer * kOctets + i;
      let first = weights_of(query, key0, 2u * octet, base);
      let second = weights_of(query, key0, 2u * octet + 1u, base);
      total += dot(vec4f(first) + vec4f(second), vec4f(1.0));
      tile[kFirstWeights + at(row, octet, kQueries, kWideK)] =
          vec4u(bitcast<vec2u>(first), bitcast<vec2u>(second));
    }
    stage(keys, key0 + kKeys, key0, index, next);
    next = fetch(keys, key0 + 2u * kKeys, key0 + kKeys, index);

    // A barrier, too. Before the first tile there is nothing to scale.
    if (workgroupUniformLoad(&grown) == key0 && key0 > 0u) {
      for (var i = 0u; i < kSums; i += 1u) {
        put(i, place, s0, s1, s2, s3, s4, s5, s6, s7);
        scale_rows(place);
        switch i {
          case 0u: { s0 = taken(place); }
          case 1u: { s1 = taken(place); }
          case 2u: { s2 = taken(place); }
          case 3u: { s3 = taken(place); }
          case 4u: { s4 = taken(place); }
          case 5u: { s5 = taken(place); }
          case 6u: { s6 = taken(place); }
          default: { s7 = taken(place); }
        }
        workgroupBarrier();
      }
    }
    for (var c = 0u; c < kKeys / 8u; c += kWideK) {
      let weights = weights_at(place, c);
      s0 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 0u), s0);
      if (kSums > 1u) {
        s1 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 1u), s1);
      }
      if (kSums > 2u) {
        s2 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 2u), s2);
      }
      if (kSums > 3u) {
        s3 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 3u), s3);
      }
      if (kSums > 4u) {
        s4 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 4u), s4);
      }
      if (kSums > 5u) {
        s5 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 5u), s5);
      }
      if (kSums > 6u) {
        s6 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 6u), s6);
      }
      if (kSums > 7u) {
        s7 = subgroupMatrixMultiplyAccumulate(weights, values_at(place, c, 7u), s7);
      }
    }
  }

  for (var i = 1u; i < kPer; i *= 2u) {
    total += subgroupShuffleXor(total, i);
  }
  if (index % kPer == 0u) {
    factors[row] = select(0.0, 1.0 / total, total > 0.0);
  }
  for (var i = 0u; i < kSums; i += 1u) {
    put(i, place, s0, s1, s2, s3, s4, s5, s6, s7);
    store_rows(i, place, block);
  }
}
