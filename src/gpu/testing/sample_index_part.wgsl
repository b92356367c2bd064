// SPDX-License-Identifier: BSD-3-Clause
// Element of an invocation in a grid folded into two dimensions.
fn linear_index(id: vec3u, row_length: u32) -> u32 {
  return id.x + id.y * row_length;
}
