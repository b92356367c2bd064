// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with many rows of x: a workgroup of side x side threads makes a tile of y
// of 4 side rows and columns, staging 16 elements of k at a time of x and of the dequantised
// weight in workgroup memory; a thread makes 4 x 4 elements. Prelude: that of the part.
//#include "ops/quant_linear/q4_part.wgsl"

override side: u32 = 16;

const kEach = 4u; // rows and columns a thread
const kQuads = 4u; // vec4s along k
const kPitch = kQuads + 1u; // of a row of a tile, so that neighbours use other banks

var<workgroup> x_tile: array<vec4f, kEach * side * kPitch>;
var<workgroup> w_tile: array<vec4f, kEach * side * kPitch>;

@compute @workgroup_size(side * side)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  let length = kEach * side;
  let tiles_n = (p.n + length - 1u) / length;
  let tile = group.x + group.y * groups.x;
  let m0 = tile / tiles_n * length;
  let n0 = tile % tiles_n * length;
  if (m0 >= p.m) {
    return;
  }
  let row = lane / side;
  let column = lane % side;

  var sums: array<vec4f, kEach>; // by row
  for (var k0 = 0u; k0 < p.words; k0 += kQuads / 2u) {
    for (var i = lane; i < length * kQuads; i += side * side) {
      let line = i / kQuads;
      let quad = i % kQuads;
      let word = k0 + quad / 2u;
      var from_x = vec4f();
      var from_w = vec4f();
      if (word < p.words && m0 + line < p.m) {
        from_x = vec4f(x[(m0 + line) * p.x_row + p.x_first + 2u * k0 + quad]);
      }
      if (word < p.words && n0 + line < p.n) {
        let at = (n0 + line) * p.w_row + p.w_first + word;
        let bits = ordered(word_of(weight[at / kWords], at % kWords));
        from_w = select(first_half(bits), last_half(bits), quad % 2u == 1u) *
                 scale_at(word, n0 + line);
      }
      x_tile[line * kPitch + quad] = from_x;
      w_tile[line * kPitch + quad] = from_w;
    }
    workgroupBarrier();
    for (var quad = 0u; quad < kQuads; quad += 1u) {
      let at = column * kPitch + quad;
      let step = side * kPitch;
      let w0 = w_tile[at];
      let w1 = w_tile[at + step];
      let w2 = w_tile[at + 2u * step];
      let w3 = w_tile[at + 3u * step];
      for (var r = 0u; r < kEach; r += 1u) {
        let value = x_tile[(row + r * side) * kPitch + quad];
        sums[r] += vec4f(dot(value, w0), dot(value, w1), dot(value, w2), dot(value, w3));
      }
    }
    workgroupBarrier();
  }
  for (var r = 0u; r < kEach; r += 1u) {
    for (var c = 0u; c < kEach; c += 1u) {
      let m = m0 + row + r * side;
      let n = n0 + column + c * side;
      if (m < p.m && n < p.n) {
        store(m, n, sums[r][c]);
      }
    }
  }
}
