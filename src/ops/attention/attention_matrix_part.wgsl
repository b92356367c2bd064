// SPDX-License-Identifier: BSD-3-Clause
// What attention_matrix.wgsl keeps in workgroup memory, all of it as matrices: rows of q, k and v,
// and weights, in f16; scores, and what passes through memory on its way to y, in f32. And what a
// thread has fetched of the next keys and values while matrices are multiplied.
//
// Prelude: that of the main file.
//#include "ops/attention/attention_inputs_part.wgsl"

const kKeys = 32u; // of a tile
const kDim = 4u * kDim4;
const kQueries = kSubgroups * kM; // of a workgroup
const kPlaceThreads = kSplit * kLanes; // that share kM queries
const kThreads = kSubgroups * kPlaceThreads;
const kChunks = kDim / 8u; // of a row: eight f16
const kWideK = kK / 8u; // chunks of a row of a matrix
const kWideN = kN / 8u;
const kFours = kN / 4u; // of a row of scores
const kMatrix = kM * kFours;

const kFirstK = kQueries * kChunks;
const kFirstV = kFirstK + kKeys * kChunks;
const kFirstWeights = kFirstV + kKeys * kChunks;
const kFirstScores = kFirstWeights + kQueries * kKeys / 8u;
var<workgroup> tile: array<vec4u, kFirstScores + kQueries * kKeys / 4u>;

// From one of the chunks that a thread stages to its next. Not a constant, though p.splits is 1:
// compilers for CPUs unroll such loops, which takes them seconds.
fn step() -> u32 {
  return kThreads * p.splits;
}

// Where a chunk of one of `rows` rows lies: those of a matrix `wide` chunks wide without gaps, as
// docs/kernels.md explains.
fn at(row: u32, chunk: u32, rows: u32, wide: u32) -> u32 {
  return (chunk / wide * rows + row) * wide + chunk % wide;
}

// Which queries and which part of the work a subgroup has.
struct Place {
  m: u32, // kM queries
  part: u32, // of kSplit
  lane: u32,
}

// Where the matrix of scores `block` of kM queries lies.
fn scores_at(m: u32, block: u32) -> u32 {
  return kFirstScores + (m * (kKeys / kN) + block) * kMatrix;
}

// Eight elements, not yet rounded, so that nothing waits for them.
struct Chunk {
  first: vec4<C>,
  last: vec4<C>,
}

fn halves(first: vec4f, last: vec4f) -> vec4u {
  return vec4u(bitcast<vec2u>(vec4<f16>(first)), bitcast<vec2u>(vec4<f16>(last)));
}

// What lies behind the last key repeats it.
struct Keys {
  first: u32, // where the head starts
  end: u32,
}
fn key_at(keys: Keys, from_key: u32, i: u32) -> u32 {
  return keys.first + min(from_key + i / kChunks, keys.end - 1u) * p.kv_row + 2u * (i % kChunks);
}
fn fetch_k(keys: Keys, from_key: u32, i: u32) -> Chunk {
  let at = key_at(keys, from_key, i);
  return Chunk(k[at], k[at + 1u]);
}
fn fetch_v(keys: Keys, from_key: u32, i: u32) -> Chunk {
  let at = key_at(keys, from_key, i);
  return Chunk(v[at], v[at + 1u]);
}
fn stage_k(i: u32, chunk: Chunk) {
  tile[kFirstK + at(i / kChunks, i % kChunks, kKeys, kWideK)] =
      halves(vec4f(chunk.first), vec4f(chunk.last));
}
fn stage_v(i: u32, chunk: Chunk) {
  tile[kFirstV + at(i / kChunks, i % kChunks, kKeys, kWideN)] =
      halves(vec4f(chunk.first), vec4f(chunk.last));
}

// Of the chunks that a thread stages the first two are fetched ahead. They have names, as an array
// may lie in memory.
const kEach = kKeys * kChunks / kThreads;
const kAhead = 2u;
struct Fetched {
  k0: Chunk,
  k1: Chunk,
  v0: Chunk,
  v1: Chunk,
}

fn fetch(keys: Keys, k_from: u32, v_from: u32, lane: u32) -> Fetched {
  var next = Fetched();
  next.k0 = fetch_k(keys, k_from, lane);
  next.v0 = fetch_v(keys, v_from, lane);
  if (kEach > 1u) {
    next.k1 = fetch_k(keys, k_from, lane + kThreads);
    next.v1 = fetch_v(keys, v_from, lane + kThreads);
  }
  return next;
}

fn stage(keys: Keys, k_from: u32, v_from: u32, lane: u32, next: Fetched) {
  stage_k(lane, next.k0);
  stage_v(lane, next.v0);
  if (kEach > 1u) {
    stage_k(lane + kThreads, next.k1);
    stage_v(lane + kThreads, next.v1);
  }
  for (var i = lane + kAhead * kThreads; i < kKeys * kChunks; i += step()) {
    stage_k(i, fetch_k(keys, k_from, i));
    stage_v(i, fetch_v(keys, v_from, i));
  }
}
