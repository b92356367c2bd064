// SPDX-License-Identifier: BSD-3-Clause
// Wrong on purpose: tests want the shader compiler's words, with this file and line 10 in them.
@group(0) @binding(0) var<storage, read_write> y: array<f32>;

override wg_size: u32 = 64;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  y[i] = 1.0 + no_such_value;
}
