// SPDX-License-Identifier: BSD-3-Clause
// y[g] = sum of the 64 values of workgroup g: a subgroup sum, then one atomic a subgroup. Right for
// every subgroup size and every way of dealing invocations to subgroups. Needs subgroups.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

var<workgroup> total: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let sum = subgroupAdd(x[id.x]);
  if (subgroupElect()) {
    atomicAdd(&total, sum);
  }
  workgroupBarrier();
  if (thread == 0u) {
    y[group.x] = atomicLoad(&total);
  }
}
