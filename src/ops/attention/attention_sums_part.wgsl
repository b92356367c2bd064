// SPDX-License-Identifier: BSD-3-Clause
// What attention_matrix.wgsl does with matrices: products, and their ways through workgroup memory.
//#include "ops/attention/attention_matrix_part.wgsl"

var<workgroup> factors: array<f32, kQueries>; // of the sums of a query

alias Left = subgroup_matrix_left<f16, kK, kM>;
alias Right = subgroup_matrix_right<f16, kN, kK>;
alias Sum = subgroup_matrix_result<f32, kN, kM>;

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn score(place: Place) {
  for (var block = place.part; block < kKeys / kN; block += kSplit) {
    var sum = Sum();
    for (var c = 0u; c < kChunks; c += kWideK) {
      let left = subgroupMatrixLoad<Left, row_major>(
          &tile, at(place.m * kM, c, kQueries, kWideK), kWideK);
      let right = subgroupMatrixLoad<Right, col_major>(
          &tile, kFirstK + at(block * kN, c, kKeys, kWideK), kWideK);
      sum = subgroupMatrixMultiplyAccumulate(left, right, sum);
    }
    subgroupMatrixStore<row_major>(&tile, scores_at(place.m, block), sum, kFours);
  }
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn weights_at(place: Place, c: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(
      &tile, kFirstWeights + at(place.m * kM, c, kQueries, kWideK), kWideK);
}
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn values_at(place: Place, c: u32, i: u32) -> Right {
  return subgroupMatrixLoad<Right, row_major>(
      &tile, kFirstV + at(8u * c, (place.part * kSums + i) * kWideN, kKeys, kWideN), kWideN);
}

// Sum `i` of each subgroup into workgroup memory, and back.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn put(i: u32, place: Place, s0: Sum, s1: Sum, s2: Sum, s3: Sum, s4: Sum, s5: Sum, s6: Sum,
       s7: Sum) {
  let first = scores_at(place.m, place.part);
  switch i {
    case 0u: { subgroupMatrixStore<row_major>(&tile, first, s0, kFours); }
    case 1u: { subgroupMatrixStore<row_major>(&tile, first, s1, kFours); }
    case 2u: { subgroupMatrixStore<row_major>(&tile, first, s2, kFours); }
    case 3u: { subgroupMatrixStore<row_major>(&tile, first, s3, kFours); }
    case 4u: { subgroupMatrixStore<row_major>(&tile, first, s4, kFours); }
    case 5u: { subgroupMatrixStore<row_major>(&tile, first, s5, kFours); }
    case 6u: { subgroupMatrixStore<row_major>(&tile, first, s6, kFours); }
    default: { subgroupMatrixStore<row_major>(&tile, first, s7, kFours); }
  }
}
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn taken(place: Place) -> Sum {
  return subgroupMatrixLoad<Sum, row_major>(&tile, scores_at(place.m, place.part), kFours);
}

// What was put, scaled.
fn scale_rows(place: Place) {
  workgroupBarrier();
  for (var i = place.lane; i < kMatrix; i += kLanes) {
    let at = scores_at(place.m, place.part) + i;
    tile[at] = bitcast<vec4u>(bitcast<vec4f>(tile[at]) * factors[place.m * kM + i / kFours]);
  }
  workgroupBarrier();
}

// The same into columns of y, as far as the block has queries.
fn store_rows(which: u32, place: Place, block: Block) {
  workgroupBarrier();
  let column = place.part * kSums + which;
  for (var i = place.lane; i < kMatrix; i += kLanes) {
    let row = place.m * kM + i / kFours;
    let r = block.r0 + row;
    if (r <= block.last) {
      y[query_at(block.head, r) + column * kFours + i % kFours] = vec4<Y>(
          bitcast<vec4f>(tile[scores_at(place.m, place.part) + i]) * factors[row]);
    }
  }
  workgroupBarrier();
}
