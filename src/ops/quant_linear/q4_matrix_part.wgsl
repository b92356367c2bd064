// SPDX-License-Identifier: BSD-3-Clause
// What q4_matrix.wgsl stages: a tile of rows of x and one of rows of the weight, both rounded to
// f16 once, kChunks words at a time, and what a thread has fetched of the next ones meanwhile. All
// of it has names: an array whose loops a compiler does not unroll lies in memory.
//
// Tiles are whole, whatever the shape: rows and words behind the last are a copy of it, and x is
// zero there along k.
//
// Prelude: that of the part, and kTileM and kTileN, the rows, kN and kK, the width and the depth of
// a matrix, kChunks, 4 and more, and kGated. The main file has kThreads, which divides what there
// is to stage.
//#include "ops/quant_linear/q4_part.wgsl"

const kChunksX = kTileM * kChunks / kThreads; // that a thread stages, of eight elements
const kLoadsW = kTileN * kChunks / kWords / kThreads; // the same of kWords of them

// Chunks of eight f16 of rows of x, then of the weight; see at(). In the end four f32 each.
var<workgroup> tile: array<vec4u, (kTileM + kTileN) * kChunks>;

// Where a chunk of a row lies. Rows of matrices lie without gaps: then Tint's guards of loads leave
// the stride alone, which is worth more than that neighbours use other banks.
const kStride = kK / 8u;
fn at(row: u32, chunk: u32) -> u32 {
  return (chunk / kStride * (kTileM + kTileN) + row) * kStride + chunk % kStride;
}

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

// What a thread has fetched and not yet staged: four times, what is beyond waits for its turn.
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
  let first = m * p.x_row + p.x_first + 2u * min(k0 + i % kChunks, p.words - 1u);
  return ChunkX(x[first], x[first + 1u]);
}

// The row of the weight for a column of the tile. With kGated the first half of the rows are gates
// of the second, and a matrix of gates stands beside the one of what they gate.
fn weight_row(place: Place, column: u32) -> u32 {
  if (kGated) {
    let all = p.n / 2u;
    let c = min(place.n0 / 2u + column / (2u * kN) * kN + column % kN, all - 1u);
    return select(c, c + all, column / kN % 2u == 1u);
  }
  return min(place.n0 + column, p.n - 1u);
}

fn fetch_w(place: Place, k0: u32, i: u32) -> LoadW {
  let n = weight_row(place, i / (kChunks / kWords));
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
  tile[at(i / kChunks, i % kChunks)] = select(vec4u(), values, k0 + i % kChunks < p.words);
}

fn stage_w(i: u32, load: LoadW) {
  let first = i % (kChunks / kWords) * kWords;
  let row = kTileM + i / (kChunks / kWords);
  for (var word = 0u; word < kWords; word += 1u) {
    tile[at(row, first + word)] = dequantized(ordered(word_of(load.words, word)), load.scale);
  }
}

fn stage(place: Place, k0: u32, lane: u32, next: Fetched) {
  stage_x(k0, lane, next.x0);
  if (kChunksX > 1u) {
    stage_x(k0, lane + kThreads, next.x1);
  }
  if (kChunksX > 2u) {
    stage_x(k0, lane + 2u * kThreads, next.x2);
    stage_x(k0, lane + 3u * kThreads, next.x3);
  }
  for (var i = 4u; i < kChunksX; i += 1u) {
    stage_x(k0, lane + i * kThreads, fetch_x(place, k0, lane + i * kThreads));
  }
  stage_w(lane, next.w0);
  if (kLoadsW > 1u) {
    stage_w(lane + kThreads, next.w1);
  }
  if (kLoadsW > 2u) {
    stage_w(lane + 2u * kThreads, next.w2);
    stage_w(lane + 3u * kThreads, next.w3);
  }
  for (var i = 4u; i < kLoadsW; i += 1u) {
    stage_w(lane + i * kThreads, fetch_w(place, k0, lane + i * kThreads));
  }
}

// Eight weights as f16.
fn dequantized(word: u32, scale: f32) -> vec4u {
  return vec4u(bitcast<vec2u>(vec4<f16>(first_half(word) * scale)),
               bitcast<vec2u>(vec4<f16>(last_half(word) * scale)));
}
