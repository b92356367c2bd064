// SPDX-License-Identifier: BSD-3-Clause
// The work split of kernels that reduce rows: `lanes` neighbouring threads share a row, so that a
// workgroup takes wg_size / lanes rows at once; RowSplit on the host chooses.
override wg_size: u32 = 64;
override lanes: u32 = 64; // a power of two that divides wg_size

// The row of a thread. Those behind the last row must not touch memory but take part in reductions.
fn split_row(group: vec3u, groups: vec3u, index: u32) -> u32 {
  return (group.x + group.y * groups.x) * (wg_size / lanes) + index / lanes;
}
