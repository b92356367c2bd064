// SPDX-License-Identifier: BSD-3-Clause
// Softmax or its logarithm along lines of p.length elements that lie p.stride apart; line r starts
// at element r / stride * stride * length + r % stride. `lanes` threads a line.
// Prelude: T and R, the types of x and y.
//#include "ops/common/row_reduce_part.wgsl"

override logarithm: bool = false;

const kLowest = -0x1.fffffep+127f;

struct Params {
  rows: u32,
  length: u32,
  stride: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<R>;
@group(1) @binding(0) var<uniform> p: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let row = split_row(group, groups, index);
  let length = select(0u, p.length, row < p.rows);
  let base = row / p.stride * p.stride * p.length + row % p.stride;
  // Starting at the lowest number, not at -inf: a line of -inf alone then gives 0 / 0 as it should.
  var largest = kLowest;
  for (var i = index % lanes; i < length; i += lanes) {
    largest = max(largest, f32(x[base + i * p.stride]));
  }
  largest = row_max(index, largest);
  var sum = 0.0;
  for (var i = index % lanes; i < length; i += lanes) {
    sum += exp(f32(x[base + i * p.stride]) - largest);
  }
  sum = row_sum(index, sum);
  let log_sum = log(sum);
  for (var i = index % lanes; i < length; i += lanes) {
    let at = base + i * p.stride;
    let value = f32(x[at]) - largest;
    if (logarithm) {
      y[at] = R(value - log_sum);
    } else {
      y[at] = R(exp(value) / sum);
    }
  }
}
