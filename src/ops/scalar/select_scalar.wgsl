// SPDX-License-Identifier: BSD-3-Clause
// slots[p.result] = x[p.element], an element that the host does not know. One thread.

struct Params {
  element: u32,
  result: u32,
}

@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> slots: array<i32>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(1)
fn main() {
  slots[p.result] = x[p.element];
}
