// SPDX-License-Identifier: BSD-3-Clause
// The index of a thread in a grid that linear_grid() folded over x and y, with 64 threads a
// workgroup. Threads behind the last element are the kernel's to turn away.
const kThreads = 64u;

fn linear_index(id: vec3u, groups: vec3u) -> u32 {
  return id.x + id.y * groups.x * kThreads;
}
