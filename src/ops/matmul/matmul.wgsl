// SPDX-License-Identifier: BSD-3-Clause
// y = alpha * a b (+ beta * bias) (+ y) for a batch of [m, k] by [k, n]. A workgroup makes a tile of
// y, staging 16-deep slices of a and b in workgroup memory; a thread makes kRows x 4 elements.
// Prelude: T, and kRows, 8ths of the tile's height.
const kSide = 8u; // the workgroup is kSide x kSide threads
const kCols = 4u;
const kTileM = kSide * kRows;
const kTileN = kSide * kCols;
const kTileK = 16u;
const kGroup = kSide * kSide;

const kHasBias = 1u;
const kAddToY = 2u;

struct Params {
  m: u32,
  n: u32,
  k: u32,
  batches: u32,
  a_stride: u32, // elements between rows of a; a batch is m rows
  a_first: u32, // in each row
  b_k: u32, // elements of b from one k to the next; a batch is n * k elements
  b_n: u32,
  y_stride: u32, // as for a
  y_first: u32,
  bias_m: u32, // elements from one row to the next, 0 to repeat one
  bias_n: u32,
  alpha: f32,
  beta: f32,
  flags: u32,
}

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read> bias: array<T>; // anything without kHasBias
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

override b_rows_are_n: bool = false; // b lies as [n, k]: neighbours in memory are neighbours in k

var<workgroup> a_tile: array<f32, kTileM * kTileK>;
var<workgroup> b_tile: array<f32, kTileK * kTileN>;

@compute @workgroup_size(kGroup)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let tiles_n = (p.n + kTileN - 1u) / kTileN;
  let tiles_m = (p.m + kTileM - 1u) / kTileM;
  let tile = group.x + group.y * groups.x;
  let batch = tile / (tiles_m * tiles_n);
  if (batch >= p.batches) {
    return;
  }
  let m0 = tile / tiles_n % tiles_m * kTileM;
  let n0 = tile % tiles_n * kTileN;
  let a_base = batch * p.m * p.a_stride + p.a_first;
  let b_base = batch * p.n * p.k;
  let row = lane / kSide;
  let column = lane % kSide;

  var sums: array<vec4f, kRows>;
  for (var k0 = 0u; k0 < p.k; k0 += kTileK) {
    for (var i = lane; i < kTileM * kTileK; i += kGroup) {
      let m = m0 + i / kTileK;
      let k = k0 + i % kTileK;
      var value = 0.0;
      if (m < p.m && k < p.k) {
        value = f32(a[a_base + m * p.a_stride + k]);
      }
      a_tile[i] = value;
    }
    for (var i = lane; i < kTileK * kTileN; i += kGroup) {
      var at = vec2u(i / kTileN, i % kTileN); // k and n in the tile
      if (b_rows_are_n) {
        at = vec2u(i % kTileK, i / kTileK);
      }
      var value = 0.0;
      if (k0 + at.x < p.k && n0 + at.y < p.n) {
        value = f32(b[b_base + (k0 + at.x) * p.b_k + (n0 + at.y) * p.b_n]);
      }
      b_tile[at.x * kTileN + at.y] = value;
    }
    workgroupBarrier();
    for (var k = 0u; k < kTileK; k += 1u) {
      let at = k * kTileN + column;
      let right = vec4f(b_tile[at], b_tile[at + kSide], b_tile[at + 2u * kSide],
                        b_tile[at + 3u * kSide]);
      for (var r = 0u; r < kRows; r += 1u) {
        sums[r] += a_tile[(row + r * kSide) * kTileK + k] * right;
      }
    }
    workgroupBarrier();
  }

  for (var r = 0u; r < kRows; r += 1u) {
    for (var c = 0u; c < kCols; c += 1u) {
      let m = m0 + row + r * kSide;
      let n = n0 + column + c * kSide;
      if (m < p.m && n < p.n) {
        let at = (batch * p.m + m) * p.y_stride + p.y_first + n;
        var value = p.alpha * sums[r][c];
        if ((p.flags & kHasBias) != 0u) {
          value += p.beta * f32(bias[m * p.bias_m + (p.y_first + n) * p.bias_n]);
        }
        if ((p.flags & kAddToY) != 0u) {
          value += f32(y[at]);
        }
        y[at] = T(value);
      }
    }
  }
}
