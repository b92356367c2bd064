// SPDX-License-Identifier: BSD-3-Clause
// v[m, n] = sum over k of (x[m, k] - x_zero) * w[n, k] * scale * scales[n] (+ bias[n]), x and w
// int8, for the rows of w that are bound. A thread makes one v, or with `bytes` four that follow
// each other: y is then int8, clamp(round(v * y_inverse) + y_zero, low, 127), in words of which
// other dispatches may make the rest.
//
// Prelude: T, the type of y, u32 with `bytes`; B, that of bias; S, that of scales; dot4(), the sum
// of four products of int8.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32, // columns of y
  first: u32, // the rows of w that are bound
  rows: u32,
  k: u32,
  w_row: u32, // bytes
  elements: u32, // of y
  x_zero: i32,
  scale: f32,
  y_inverse: f32,
  y_zero: f32,
  low: f32,
  flags: u32,
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<S>;
@group(0) @binding(3) var<storage, read> bias: array<B>; // anything without kHasBias
@group(0) @binding(4) var<storage, read_write> y: array<T>;
@group(1) @binding(0) var<uniform> p: Params;

const kHasBias = 1u;

override bytes: bool = false;
override whole_words: bool = false; // rows of x and of w start at words

fn word_at(byte: u32, low: u32, high: u32) -> u32 {
  let shift = byte % 4u * 8u;
  return (low >> shift) | select(0u, high << ((32u - shift) % 32u), shift != 0u);
}

// Up to four bytes of x or of the weight that start anywhere; those behind `count` are 0.
fn x_bytes(at: u32, count: u32) -> u32 {
  let word = word_at(at, x[at / 4u], x[(at + count - 1u) / 4u]);
  return word & (0xffffffffu >> (32u - 8u * count));
}
fn weight_bytes(at: u32, count: u32) -> u32 {
  let word = word_at(at, weight[at / 4u], weight[(at + count - 1u) / 4u]);
  return word & (0xffffffffu >> (32u - 8u * count));
}

fn value_of(m: u32, n: u32) -> f32 {
  let row = n - p.first;
  var products = 0;
  var sum = 0; // of the weights
  if (whole_words) {
    for (var i = 0u; i < p.k / 4u; i += 1u) {
      let w = weight[row * (p.w_row / 4u) + i];
      products += dot4(x[m * (p.k / 4u) + i], w);
      sum += dot4(0x01010101u, w);
    }
  } else {
    for (var k = 0u; k < p.k; k += 4u) {
      let count = min(4u, p.k - k);
      let w = weight_bytes(row * p.w_row + k, count);
      products += dot4(x_bytes(m * p.k + k, count), w);
      sum += dot4(0x01010101u, w);
    }
  }
  var value = f32(products - p.x_zero * sum) * p.scale * f32(scales[n]);
  if ((p.flags & kHasBias) != 0u) {
    value += f32(bias[n]);
  }
  return value;
}

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = linear_index(id, groups);
  if (!bytes) {
    let n = i % p.n;
    if (i < p.elements && n - p.first < p.rows) {
      y[i] = T(value_of(i / p.n, n));
    }
    return;
  }
  if (i > (p.elements - 1u) / 4u) {
    return;
  }
  var packed = u32(y[i]);
  for (var e = 0u; e < min(4u, p.elements - 4u * i); e += 1u) {
    let n = (4u * i + e) % p.n;
    if (n - p.first < p.rows) {
      let value = value_of((4u * i + e) / p.n, n);
      let byte = clamp(round(value * p.y_inverse) + p.y_zero, p.low, 127.0);
      packed = insertBits(packed, bitcast<u32>(i32(byte)), 8u * e, 8u);
    }
  }
  y[i] = T(packed);
}
