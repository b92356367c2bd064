// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with many rows of x, by matrix units: f16 times f16, sums in f32. A
// workgroup makes a tile of y of kTileM x kTileN elements, each of its subgroups 2 or 4 rows
// (kRowsY) of two matrices of kM x kN. x and the dequantised weight, each rounded to f16 once, are
// staged in workgroup memory, 32 elements of k at a time, while what comes next is on its way from
// the buffers to registers. Matrices and what is on its way have names: an array whose loops a
// compiler does not unroll lies in memory, which takes three quarters of the speed.
//
// Tiles are whole, whatever the shape: rows behind the last are a copy of it, which is not stored,
// and k behind the last is zero.
//
// Prelude: that of the part, and kM, kN, kK, kTileM, kTileN, kRowsY, and kLanes, the lanes of a
// subgroup. A thread stages 1, 2 or 4 chunks of x and of the weight.
//#include "ops/quant_linear/q4_part.wgsl"

const kSubM = kRowsY * kM; // what a subgroup makes
const kSubN = 2u * kN;
const kColumns = kTileN / kSubN; // of subgroups in a workgroup
const kThreads = kTileM / kSubM * kColumns * kLanes;
const kChunks = 4u; // of eight elements, a word of the weight, in a row of a tile
const kPitch = kChunks + kPad; // so that neighbours use other banks
const kChunksX = kTileM * kChunks / kThreads; // that a thread stages
const kLoadsW = kTileN * kChunks / kWords / kThreads; // the same for the weight, kWords at once

alias Left = subgroup_matrix_left<f16, kK, kM>;
alias Right = subgroup_matrix_right<f16, kN, kK>;
alias Sum = subgroup_matrix_result<f32, kN, kM>;

// Rows of x, then rows of the weight; in the end each subgroup's strips of y. A chunk is eight f16,
// or four f32.
var<workgroup> tile: array<vec4u, (kTileM + kTileN) * kPitch>;

struct Place {
  m0: u32,
  n0: u32,
}

struct ChunkX {
  first: vec4<X>,
  last: vec4<X>,
}

struct LoadW {
  words: W,
  scale: f32,
}

// What a thread has fetched and not yet staged.
struct Fetched {
  x0: ChunkX,
  x1: ChunkX,
  x2: ChunkX,
  x3: ChunkX,
  w0: LoadW,
  w1: LoadW,
  w2: LoadW,
  w3: LoadW,
}

fn fetch_x(place: Place, k0: u32, i: u32) -> ChunkX {
  let m = min(place.m0 + i / kChunks, p.m - 1u);
  let at = m * p.x_row + p.x_first + 2u * min(k0 + i % kChunks, p.words - 1u);
  return ChunkX(x[at], x[at + 1u]);
}

fn fetch_w(place: Place, k0: u32, i: u32) -> LoadW {
  let n = min(place.n0 + i / (kChunks / kWords), p.n - 1u);
  let word = min(k0 + i % (kChunks / kWords) * kWords, p.words - kWords);
  return LoadW(weight[(n * p.w_row + p.w_first + word) / kWords], scale_at(word, n));
}

fn fetch(place: Place, k0: u32, lane: u32) -> Fetched {
  var next = Fetched();
  next.x0 = fetch_x(place, k0, lane);
  if (kChunksX > 1u) {
    next.x1 = fetch_x(place, k0, lane + kThreads);
  }
  if (kChunksX > 2u) {
    next.x2 = fetch_x(place, k0, lane + 2u * kThreads);
    next.x3 = fetch_x(place, k0, lane + 3u * kThreads);
  }
  next.w0 = fetch_w(place, k0, lane);
  if (kLoadsW > 1u) {
    next.w1 = fetch_w(place, k0, lane + kThreads);
  }
  if (kLoadsW > 2u) {
    next.w2 = fetch_w(place, k0, lane + 2u * kThreads);
    next.w3 = fetch_w(place, k0, lane + 3u * kThreads);
  }
  return next;
}

fn stage_x(k0: u32, i: u32, chunk: ChunkX) {
  let values = vec4u(bitcast<vec2u>(vec4<f16>(chunk.first)), bitcast<vec2u>(vec4<f16>(chunk.last)));
  tile[i / kChunks * kPitch + i % kChunks] =
      select(vec4u(), values, k0 + i % kChunks < p.words);
}

fn stage_w(k0: u32, i: u32, load: LoadW) {
  let first = i % (kChunks / kWords) * kWords;
  let at = (kTileM + i / (kChunks / kWords)) * kPitch + first;
  for (var word = 0u; word < kWords; word += 1u) {
    let values = dequantized(ordered(word_of(load.words, word)), load.scale);
    tile[at + word] = select(vec4u(), values, k0 + first < p.words);
  }
}

fn stage(k0: u32, lane: u32, next: Fetched) {
  stage_x(k0, lane, next.x0);
  if (kChunksX > 1u) {
    stage_x(k0, lane + kThreads, next.x1);
  }
  if (kChunksX > 2u) {
    stage_x(k0, lane + 2u * kThreads, next.x2);
    stage_x(k0, lane + 3u * kThreads, next.x3);
  }
  stage_w(k0, lane, next.w0);
  if (kLoadsW > 1u) {
    stage_w(k0, lane + kThreads, next.w1);
  }
  if (kLoadsW > 2u) {
    stage_w(k0, lane + 2u * kThreads, next.w2);
    stage_w(k0, lane + 3u * kThreads, next.w3);
  }
}

// Eight weights as f16. The bits of a number below 16 are those of 2^23 plus it in f32.
fn dequantized(word: u32, scale: f32) -> vec4u {
  const kBits = vec4u(0x4b000000u);
  const kZero = 8388616.0; // 2^23 + 8
  let low = bitcast<vec4f>(((vec4u(word) >> vec4u(0u, 4u, 8u, 12u)) & vec4u(15u)) | kBits);
  let high = bitcast<vec4f>(((vec4u(word) >> vec4u(16u, 20u, 24u, 28u)) & vec4u(15u)) | kBits);
  return vec4u(bitcast<vec2u>(vec4<f16>((low - kZero) * scale)),
               bitcast<vec2u>(vec4<f16>((high - kZero) * scale)));
}

@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn left_at(row: u32, chunk: u32) -> Left {
  return subgroupMatrixLoad<Left, row_major>(&tile, row * kPitch + chunk, kPitch);
}
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn right_at(row: u32, chunk: u32) -> Right {
  return subgroupMatrixLoad<Right, col_major>(&tile, (kTileM + row) * kPitch + chunk, kPitch);
}

// Stores two matrices beside each other. All subgroups at once.
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn store_strip(m0: u32, n0: u32, lane: u32, first: Sum, second: Sum) {
  let strip = lane / kLanes * (kM * kSubN / 4u);
  subgroupMatrixStore<row_major>(&tile, strip, first, kSubN / 4u);
  subgroupMatrixStore<row_major>(&tile, strip + kN / 4u, second, kSubN / 4u);
  workgroupBarrier();
  for (var i = lane % kLanes; i < kM * kSubN; i += kLanes) {
    let m = m0 + i / kSubN;
    let n = n0 + i % kSubN;
    if (m < p.m && n < p.n) {
      store(m, n, bitcast<f32>(tile[strip + i / 4u][i % 4u]));
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
  let sub_m = lane / kLanes / kColumns * kSubM;
  let sub_n = lane / kLanes % kColumns * kSubN;
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
    stage(k0, lane, next);
    workgroupBarrier();
    next = fetch(place, k0 + kChunks, lane);
    for (var k = 0u; k < kChunks; k += kK / 8u) {
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
