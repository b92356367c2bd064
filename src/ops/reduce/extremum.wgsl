// SPDX-License-Identifier: BSD-3-Clause
// The largest or smallest element of each line of x (lines as in sum.wgsl), or where it is: the
// first of equal ones. A NaN counts as beyond every number, as in PyTorch. `lanes` threads a line.
//
// Elements are compared as unsigned keys of the same order, so that NaNs and infinities do not
// depend on a driver's floating-point rules. For the smallest the order is flipped.
// Prelude: T and R, the types of x and y; `fn order_of(x: T) -> u32`, `fn is_nan(x: T) -> bool`.
//#include "ops/common/rows_part.wgsl"

override position: bool = false;

const kNothing = 0xffffffffu; // no element; an index that loses every tie

struct Params {
  rows: u32,
  length: u32,
  stride: u32,
  flip: u32, // all ones for the smallest
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<R>;
@group(1) @binding(0) var<uniform> p: Params;

struct Found {
  key: u32,
  index: u32,
}

var<workgroup> partials: array<Found, wg_size>;

fn better(a: Found, b: Found) -> Found {
  if (b.index != kNothing && (a.index == kNothing || b.key > a.key ||
                              (b.key == a.key && b.index < a.index))) {
    return b;
  }
  return a;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let row = split_row(group, groups, index);
  let length = select(0u, p.length, row < p.rows);
  let base = row / p.stride * p.stride * p.length + row % p.stride;
  let lane = index % lanes;
  var found = Found(0u, kNothing);
  for (var i = lane; i < length; i += lanes) {
    let value = x[base + i * p.stride];
    let key = select(order_of(value) ^ p.flip, 0xffffffffu, is_nan(value));
    found = better(found, Found(key, i));
  }
  partials[index] = found;
  for (var half = lanes / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
      partials[index] = better(partials[index], partials[index + half]);
    }
  }
  if (row < p.rows && lane == 0u) {
    let best = partials[index];
    if (position) {
      y[row] = R(best.index);
    } else {
      y[row] = R(x[base + best.index * p.stride]);
    }
  }
}
