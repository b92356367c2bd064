// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer whose rows or groups are not whole words, so one element at a time:
// y[m, n] = sum over k of x[m, k] * (w[n, k] - 8) * scales[k / group, n] (+ bias[m or 0, n])
// (+ y[m, n]),
// with two w to a byte. One thread an element of y.
// Prelude: X, the type of x; T, that of bias and y; S, that of scales.
//#include "ops/common/linear_part.wgsl"

struct Params {
  m: u32,
  n: u32,
  k: u32, // elements to sum over, from k_first on
  k_first: u32,
  x_row: u32, // elements between rows of x
  x_first: u32,
  w_row: u32, // bytes between rows of the weight
  y_row: u32,
  y_first: u32,
  group: u32, // k_first is a multiple
  s_row: u32,
  s_first: u32,
  bias_first: u32,
  bias_row: u32, // 0: the same for all rows
  flags: u32,
}

@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<S>;
@group(0) @binding(3) var<storage, read> bias: array<T>; // anything without kHasBias
@group(0) @binding(4) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

const kHasBias = 1u;
const kAddToY = 2u;

override swapped: bool = false; // the first of two elements in the high half of their byte

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (i >= p.m * p.n) {
    return;
  }
  let m = i / p.n;
  let n = i % p.n;
  var sum = 0.0;
  for (var start = 0u; start < p.k; start += p.group) {
    var part = 0.0;
    for (var j = start; j < min(start + p.group, p.k); j += 1u) {
      let k = p.k_first + j;
      let byte = n * p.w_row + k / 2u;
      let shift = byte % 4u * 8u + select(k % 2u, 1u - k % 2u, swapped) * 4u;
      let value = f32((weight[byte / 4u] >> shift) & 15u) - 8.0;
      part += f32(x[m * p.x_row + p.x_first + k]) * value;
    }
    sum += part * f32(scales[p.s_first + start / p.group * p.s_row + n]);
  }
  let at = m * p.y_row + p.y_first + n;
  if ((p.flags & kHasBias) != 0u) {
    sum += f32(bias[p.bias_first + m * p.bias_row + n]);
  }
  if ((p.flags & kAddToY) != 0u) {
    sum += f32(y[at]);
  }
  y[at] = T(sum);
}
