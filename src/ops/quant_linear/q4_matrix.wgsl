// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with many rows of x, by matrix units: f16 times f16, sums in f32. A
// workgroup makes a tile of y of kTileM x kTileN elements, each of its subgroups one of
// kSubM x kSubN, in matrices of kM x kN. x and the dequantised weight, each rounded to f16 once, are
// staged in workgroup memory, kDepth elements of k at a time, while what comes next is on its way
// from the buffers to registers.
//
// Tiles are whole, whatever the shape: rows behind the last are a copy of it, which is not stored,
// and k behind the last is zero.
//
// Prelude: that of the part, and what the route says: kM, kN, kK, kTileM, kTileN, kSubM,
// kSubN, kDepth, and kLanes, the lanes of a subgroup.
//#include "ops/quant_linear/q4_part.wgsl"

const kColumns = kTileN / kSubN; // of subgroups in a workgroup
const kThreads = kTileM / kSubM * kColumns * kLanes;
const kChunks = kDepth / 8u; // of eight elements, a word of the weight, in a row of a tile
const kPitch = kChunks + 1u; // so that neighbours use other banks
const kChunksX = kTileM * kChunks / kThreads; // that a thread stages
const kLoadsW = kTileN * kChunks / kWords / kThreads; // the same for the weight, kWords at once
const kRowsY = kSubM / kM; // of a subgroup's matrices
const kColumnsY = kSubN / kN;
const kStrip = kM * kSubN; // elements of a row of them

// Rows of x, then rows of the weight; in the end each subgroup's strips of y. A chunk is eight f16,
// or four f32.
var<workgroup> tile: array<vec4u, (kTileM + kTileN) * kPitch>;

// What a thread has fetched and not yet staged.
struct Fetched {
  x: array<vec4<X>, 2u * kChunksX>,
  w: array<W, kLoadsW>,
  scales: array<f32, kLoadsW>,
}

fn fetch(m0: u32, n0: u32, k0: u32, lane: u32, fetched: ptr<function, Fetched>) {
  for (var i = 0u; i < kChunksX; i += 1u) {
    let chunk = lane + i * kThreads;
    let m = min(m0 + chunk / kChunks, p.m - 1u);
    let at = m * p.x_row + p.x_first + 2u * min(k0 + chunk % kChunks, p.words - 1u);
    (*fetched).x[2u * i] = x[at];
    (*fetched).x[2u * i + 1u] = x[at + 1u];
  }
  for (var i = 0u; i < kLoadsW; i += 1u) {
    let load = lane + i * kThreads;
    let n = min(n0 + load / (kChunks / kWords), p.n - 1u);
    let word = min(k0 + load % (kChunks / kWords) * kWords, p.words - kWords);
    (*fetched).w[i] = weight[(n * p.w_row + p.w_first + word) / kWords];
    (*fetched).scales[i] = scale_at(word, n);
  }
}

fn stage(k0: u32, lane: u32, fetched: ptr<function, Fetched>) {
  for (var i = 0u; i < kChunksX; i += 1u) {
    let chunk = lane + i * kThreads;
    let values = vec4u(bitcast<vec2u>(vec4<f16>((*fetched).x[2u * i])),
                       bitcast<vec2u>(vec4<f16>((*fetched).x[2u * i + 1u])));
    tile[chunk / kChunks * kPitch + chunk % kChunks] =
        select(vec4u(), values, k0 + chunk % kChunks < p.words);
  }
  for (var i = 0u; i < kLoadsW; i += 1u) {
    let load = lane + i * kThreads;
    let first = load % (kChunks / kWords) * kWords;
    let at = (kTileM + load / (kChunks / kWords)) * kPitch + first;
    for (var word = 0u; word < kWords; word += 1u) {
      let values = dequantized(ordered(word_of((*fetched).w[i], word)), (*fetched).scales[i]);
      tile[at + word] = select(vec4u(), values, k0 + first < p.words);
    }
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

@compute @workgroup_size(kThreads)
@diagnostic(off, chromium.subgroup_matrix_uniformity)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  // Neighbours share rows of the weight.
  let tiles_m = (p.m + kTileM - 1u) / kTileM;
  let place = group.x + group.y * groups.x;
  let m0 = place % tiles_m * kTileM;
  let n0 = place / tiles_m * kTileN;
  if (n0 >= p.n) {
    return;
  }
  let subgroup = lane / kLanes;
  let sub_m = subgroup / kColumns * kSubM;
  let sub_n = subgroup % kColumns * kSubN;
  var sums = array<subgroup_matrix_result<f32, kN, kM>, kRowsY * kColumnsY>();
  var fetched = Fetched();
  fetch(m0, n0, 0u, lane, &fetched);
  for (var k0 = 0u; k0 < p.words; k0 += kChunks) {
    stage(k0, lane, &fetched);
    workgroupBarrier();
    fetch(m0, n0, k0 + kChunks, lane, &fetched);
    for (var k = 0u; k < kDepth / kK; k += 1u) {
      var left = array<subgroup_matrix_left<f16, kK, kM>, kRowsY>();
      for (var r = 0u; r < kRowsY; r += 1u) {
        left[r] = subgroupMatrixLoad<subgroup_matrix_left<f16, kK, kM>, row_major>(
            &tile, (sub_m + r * kM) * kPitch + k * (kK / 8u), kPitch);
      }
      for (var c = 0u; c < kColumnsY; c += 1u) {
        let right = subgroupMatrixLoad<subgroup_matrix_right<f16, kN, kK>, col_major>(
            &tile, (kTileM + sub_n + c * kN) * kPitch + k * (kK / 8u), kPitch);
        for (var r = 0u; r < kRowsY; r += 1u) {
          let i = r * kColumnsY + c;
          sums[i] = subgroupMatrixMultiplyAccumulate(left[r], right, sums[i]);
        }
      }
    }
    workgroupBarrier();
  }

  let strip = subgroup * (kStrip / 4u);
  for (var r = 0u; r < kRowsY; r += 1u) {
    for (var c = 0u; c < kColumnsY; c += 1u) {
      subgroupMatrixStore<row_major>(&tile, strip + c * (kN / 4u), sums[r * kColumnsY + c],
                                     kSubN / 4u);
    }
    workgroupBarrier();
    for (var i = lane % kLanes; i < kStrip; i += kLanes) {
      let m = m0 + sub_m + r * kM + i / kSubN;
      let n = n0 + sub_n + i % kSubN;
      if (m < p.m && n < p.n) {
        store(m, n, bitcast<f32>(tile[strip + i / 4u][i % 4u]));
      }
    }
    workgroupBarrier();
  }
}
