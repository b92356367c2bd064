// SPDX-License-Identifier: BSD-3-Clause
// y[i] = c[i] ? a[i] : b[i], all three broadcast to y's shape as in pointwise_broadcast.wgsl. c has
// bytes; a, b and y have elements of 32 / lanes bits, moved as they are. One thread a word of y.
//#include "ops/common/linear_part.wgsl"

struct Params {
  n: u32,
  rank: u32, // at least 1
  dims: array<vec4u, 2>,
  c_strides: array<vec4u, 2>,
  a_strides: array<vec4u, 2>,
  b_strides: array<vec4u, 2>,
}

@group(0) @binding(0) var<storage, read> c: array<u32>;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(1) @binding(0) var<uniform> p: Params;

override lanes: u32 = 1; // elements a word: 1, 2 or 4

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let word = linear_index(id, groups);
  let first = word * lanes;
  if (first >= p.n) {
    return;
  }
  let width = 32u / lanes;
  let mask = 0xffffffffu >> (32u - width);
  var bits = 0u;
  for (var lane = 0u; lane < lanes; lane += 1u) {
    if (first + lane < p.n) {
      var rest = first + lane;
      var at = vec3u(0u);
      for (var axis = 0u; axis < p.rank; axis += 1u) {
        let dim = p.dims[axis / 4u][axis % 4u];
        at += rest % dim * vec3u(p.c_strides[axis / 4u][axis % 4u],
            p.a_strides[axis / 4u][axis % 4u], p.b_strides[axis / 4u][axis % 4u]);
        rest /= dim;
      }
      let chosen = ((c[at.x / 4u] >> (at.x % 4u * 8u)) & 0xffu) != 0u;
      let index = select(at.z, at.y, chosen);
      let source = select(b[at.z / lanes], a[at.y / lanes], chosen);
      bits |= ((source >> (index % lanes * width)) & mask) << (lane * width);
    }
  }
  y[word] = bits;
}
