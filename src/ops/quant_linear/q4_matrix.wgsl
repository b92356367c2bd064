// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with many rows of x, by matrix units: f16 times f16, sums in f32. A
// workgroup makes a tile of y of kTileM x kTileN elements. Each of its subgroups makes kRowsY (2 or
// 4) rows of two matrices of kM x kN; kSplit of them make the same ones, each from its own part of
// what is staged, and their sums are added in the end. While matrices are multiplied, what comes
// next is on its way from the buffers. Matrices have names, as an array of them may lie in memory.
// With kGated y has half as many columns: y[m, n] = g * sigmoid(g) * u with g = column n and u =
// column n + p.n / 2 of the product.
//
// Prelude: that of the part, and kM, kRowsY, kSplit, and kLanes, the lanes of a subgroup.
//#include "ops/quant_linear/q4_matrix_part.wgsl"
//#include "ops/quant_linear/swiglu_part.wgsl"

const kSubM = kRowsY * kM; // what a subgroup makes
const kSubN = 2u * kN;
const kColumns = kTileN / kSubN; // of subgroups in a tile
const kSubgroups = kTileM / kSubM * kColumns; // the same, all of them
const kThreads = kSubgroups * kSplit * kLanes;
const kStrip = kM * kSubN; // elements of a row of matrices

alias Left = subgroup_matrix_left<f16, kK, kM>;
alias Right = subgroup_matrix_right<f16, kN, kK>;
alias Sum = subgroup_matrix_result<f32, kN, kM>;

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn left_at(row: u32, chunk: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&tile, at(row, chunk), kStride);
}
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn right_at(row: u32, chunk: u32) -> Right {
  return subgroupMatrixLoad<Right, col_major>(&tile, at(kTileM + row, chunk), kStride);
}

// An element of two matrices beside each other, the sum of all parts of it.
fn strip_sum(subgroup: u32, i: u32) -> f32 {
  var sum = 0.0;
  for (var part = 0u; part < kSplit; part += 1u) {
    sum += bitcast<f32>(tile[(part * kSubgroups + subgroup) * (kStrip / 4u) + i / 4u][i % 4u]);
  }
  return sum;
}

// Stores two matrices beside each other. All subgroups at once.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn store_strip(m0: u32, n0: u32, lane: u32, first: Sum, second: Sum) {
  let strip = lane / kLanes * (kStrip / 4u);
  subgroupMatrixStore<row_major>(&tile, strip, first, kSubN / 4u);
  subgroupMatrixStore<row_major>(&tile, strip + kN / 4u, second, kSubN / 4u);
  workgroupBarrier();
  let subgroup = lane / kLanes % kSubgroups;
  let part = lane / kLanes / kSubgroups;
  const kOut = select(kSubN, kN, kGated); // columns of y
  for (var i = part * kLanes + lane % kLanes; i < kM * kOut; i += kSplit * kLanes) {
    let m = m0 + i / kOut;
    let n = n0 / (kSubN / kOut) + i % kOut;
    if (m < p.m && n < p.n / (kSubN / kOut)) {
      let at = i / kOut * kSubN + i % kOut;
      if (kGated) {
        store(m, n, swiglu(strip_sum(subgroup, at), strip_sum(subgroup, at + kN)));
      } else {
        store(m, n, strip_sum(subgroup, at));
      }
    }
  }
  workgroupBarrier();
}

@compute @workgroup_size(kThreads)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  // Neighbours share rows of the weight.
  let tiles_m = (p.m + kTileM - 1u) / kTileM;
  let index = group.x + group.y * groups.x;
  let place = Place(index % tiles_m * kTileM, index / tiles_m * kTileN);
  if (place.n0 >= p.n) {
    return;
  }
  let subgroup = lane / kLanes % kSubgroups;
  let sub_m = subgroup / kColumns * kSubM;
  let sub_n = subgroup % kColumns * kSubN;
  let part = lane / kLanes / kSubgroups * (kChunks / kSplit);
  var s00 = Sum();
  var s01 = Sum();
  var s10 = Sum();
  var s11 = Sum();
  var s20 = Sum();
  var s21 = Sum();
  var s30 = Sum();
  var s31 = Sum();
  var next = fetch(place, 0u, lane);
  for (var k0 = 0u; k0 < p.words; k0 += kChunks) {
    stage(place, k0, lane, next);
    workgroupBarrier();
    next = fetch(place, k0 + kChunks, lane);
    for (var i = 0u; i < kChunks / kSplit; i += kStride) {
      let k = part + i;
      let right0 = right_at(sub_n, k);
      let right1 = right_at(sub_n + kN, k);
      let left0 = left_at(sub_m, k);
      s00 = subgroupMatrixMultiplyAccumulate(left0, right0, s00);
      s01 = subgroupMatrixMultiplyAccumulate(left0, right1, s01);
      let left1 = left_at(sub_m + kM, k);
      s10 = subgroupMatrixMultiplyAccumulate(left1, right0, s10);
      s11 = subgroupMatrixMultiplyAccumulate(left1, right1, s11);
      if (kRowsY > 2u) {
        let left2 = left_at(sub_m + 2u * kM, k);
        s20 = subgroupMatrixMultiplyAccumulate(left2, right0, s20);
        s21 = subgroupMatrixMultiplyAccumulate(left2, right1, s21);
        let left3 = left_at(sub_m + 3u * kM, k);
        s30 = subgroupMatrixMultiplyAccumulate(left3, right0, s30);
        s31 = subgroupMatrixMultiplyAccumulate(left3, right1, s31);
      }
    }
    workgroupBarrier();
  }

  let m0 = place.m0 + sub_m;
  let n0 = place.n0 + sub_n;
  store_strip(m0, n0, lane, s00, s01);
  store_strip(m0 + kM, n0, lane, s10, s11);
  if (kRowsY > 2u) {
    store_strip(m0 + 2u * kM, n0, lane, s20, s21);
    store_strip(m0 + 3u * kM, n0, lane, s30, s31);
  }
}
