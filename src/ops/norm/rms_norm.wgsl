// SPDX-License-Identifier: BSD-3-Clause
// y = x / sqrt(mean(x^2) + eps) * weight over rows of p.width loads. `lanes` threads a row.
// Prelude: a variant ("ops/common/variant.h").
//#include "ops/common/row_total_part.wgsl"

struct Params {
  rows: u32,
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<V>;
@group(0) @binding(1) var<storage, read> weight: array<V>;
@group(0) @binding(2) var<storage, read_write> y: array<V>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let row = split_row(group, groups, index);
  let width = select(0u, p.width, row < p.rows);
  let base = row * p.width;
  var squares = W();
  for (var i = index % lanes; i < width; i += lanes) {
    let value = W(x[base + i]);
    squares += value * value;
  }
  let scale = inverseSqrt(row_total(index, total(squares)) / f32(p.width * kWidth) + p.eps);
  for (var i = index % lanes; i < width; i += lanes) {
    y[base + i] = V(W(x[base + i]) * scale * W(weight[i]));
  }
}
