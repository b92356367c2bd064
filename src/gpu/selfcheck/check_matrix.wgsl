// SPDX-License-Identifier: BSD-3-Clause
// y[kM, kN] = x[kM, kK] * w[kK, kN] by one subgroup's matrix unit: f16 in, f32 out.
// Prelude: kM, kN, kK, a shape that the adapter offers. Needs subgroup-matrix.
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read> w: array<f16>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

override subgroup_size: u32;

@compute @workgroup_size(subgroup_size)
fn main() {
  let left = subgroupMatrixLoad<subgroup_matrix_left<f16, kK, kM>>(&x, 0u, false, kK);
  let right = subgroupMatrixLoad<subgroup_matrix_right<f16, kN, kK>>(&w, 0u, false, kN);
  var product: subgroup_matrix_result<f32, kN, kM>;
  product = subgroupMatrixMultiplyAccumulate(left, right, product);
  subgroupMatrixStore(&y, 0u, product, false, kN);
}
