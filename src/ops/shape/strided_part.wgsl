// SPDX-License-Identifier: BSD-3-Clause
// Where the elements of a dense result come from: an offset into the source that is linear in the
// coordinates of the result. Up to 16 axes, innermost first. A negative stride is given as its
// two's complement, so that u32 arithmetic wraps to the right offset.

struct Params {
  n: u32,     // elements of the result
  rank: u32,
  base: u32,  // offset of the first element
  fill: u32,  // bits of an element without a source
  dims: array<vec4u, 4>,
  strides: array<vec4u, 4>,
  lows: array<vec4u, 4>,
  sizes: array<vec4u, 4>,
}

@group(1) @binding(0) var<uniform> p: Params;

// Only coordinates [low, low + size) of an axis have a source, counted from low.
override windowed: bool = false;

const kNoSource = 0xffffffffu;

fn source_of(i: u32) -> u32 {
  var rest = i;
  var at = p.base;
  for (var axis = 0u; axis < p.rank; axis += 1u) {
    let dim = p.dims[axis / 4u][axis % 4u];
    var coordinate = rest % dim;
    rest /= dim;
    if (windowed) {
      coordinate -= p.lows[axis / 4u][axis % 4u];
      if (coordinate >= p.sizes[axis / 4u][axis % 4u]) {
        return kNoSource;
      }
    }
    at += coordinate * p.strides[axis / 4u][axis % 4u];
  }
  return at;
}
