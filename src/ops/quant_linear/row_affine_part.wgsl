// SPDX-License-Identifier: BSD-3-Clause
// Rows that are quantised to int8, each with a scale and a zero point of its own. The kernel
// declares zero_points: int8, four to a word.

fn zero_point(row: u32) -> f32 {
  let byte = (zero_points[row / 4u] >> (row % 4u * 8u)) & 0xffu;
  return f32(byte) - select(0.0, 256.0, byte >= 128u);
}

fn quantized(value: f32, scale: f32, zero: f32) -> f32 {
  return clamp(round(value / scale) + zero, -128.0, 127.0);
}
