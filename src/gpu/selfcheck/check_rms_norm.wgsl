// SPDX-License-Identifier: BSD-3-Clause
// y[r, :] = x[r, :] / sqrt(mean(x[r, :]^2) + eps): a workgroup a row, summed in workgroup memory.
struct Params {
  width: u32,
  eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> p: Params;

const kThreads = 64u;
var<workgroup> partial: array<f32, kThreads>;

@compute @workgroup_size(kThreads)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let row = group.x * p.width;
  var sum = 0.0;
  for (var i = thread; i < p.width; i += kThreads) {
    sum += x[row + i] * x[row + i];
  }
  partial[thread] = sum;
  for (var step = kThreads / 2u; step > 0u; step /= 2u) {
    workgroupBarrier();
    if (thread < step) {
      partial[thread] += partial[thread + step];
    }
  }
  workgroupBarrier();
  let scale = inverseSqrt(partial[0] / f32(p.width) + p.eps);
  for (var i = thread; i < p.width; i += kThreads) {
    y[row + i] = x[row + i] * scale;
  }
}
