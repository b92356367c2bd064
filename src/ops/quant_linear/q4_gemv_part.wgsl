// SPDX-License-Identifier: BSD-3-Clause
// A 4-bit linear layer with few rows of x: a workgroup makes kColumns columns of kRows rows, its
// threads sharing the sum over k. The main function adds their partial sums.
// With kNormed x counts as its rms_norm: x[m, k] * norm[k] / sqrt(mean over k of x[m, k]^2 + eps).
// With kGated the first half of the columns are gates of the second, and y has half as many:
// y[m, n] = g * sigmoid(g) * u with g = column n and u = column n + p.n / 2.
// Prelude: that of the part below, kRows, kColumns (even if gated), kNormed and kGated.
//#include "ops/quant_linear/q4_part.wgsl"
//#include "ops/quant_linear/swiglu_part.wgsl"

@group(0) @binding(5) var<storage, read> norm: array<vec4<T>>; // anything unless kNormed

override wg_size: u32 = 64;

const kOut = select(kColumns, kColumns / 2u, kGated); // columns of y
const kSums = kRows * kColumns;
const kPartials = select(kSums, kSums + kRows, kNormed); // behind the sums squares of x

var<workgroup> partials: array<f32, wg_size * kPartials>; // a row a thread, or a row a subgroup

struct Place {
  m0: u32,
  n0: u32, // of y
}

fn place_of(group: vec3u, groups: vec3u) -> Place {
  return Place(group.z * kRows, (group.x + group.y * groups.x) * kOut);
}

// The row of the weight for a column; what lies behind the last repeats it.
fn column(place: Place, c: u32) -> u32 {
  if (kGated) {
    let all = p.n / 2u;
    return min(place.n0 + c % kOut, all - 1u) + select(0u, all, c >= kOut);
  }
  return min(place.n0 + c, p.n - 1u);
}

// What one thread adds to each of the sums, by row and then column.
fn thread_sums(place: Place, lane: u32) -> array<f32, kPartials> {
  var sums: array<f32, kPartials>;
  for (var i = lane * kWords; i < p.words; i += wg_size * kWords) {
    for (var r = 0u; r < kRows; r += 1u) {
      let row = min(place.m0 + r, p.m - 1u) * p.x_row + p.x_first + 2u * i;
      var values = array<vec4f, 2u * kWords>();
      for (var j = 0u; j < 2u * kWords; j += 1u) {
        values[j] = vec4f(x[row + j]);
        if (kNormed) {
          sums[kPartials - kRows + r] += dot(values[j], values[j]);
          values[j] *= vec4f(norm[p.x_first + 2u * i + j]);
        }
        values[j] *= 1.0 / kSpread;
      }
      for (var c = 0u; c < kColumns; c += 1u) {
        let n = column(place, c);
        let load = weight[(n * p.w_row + p.w_first + i) / kWords];
        var sum = vec4f();
        for (var j = 0u; j < kWords; j += 1u) {
          let word = ordered(word_of(load, j));
          sum += values[2u * j] * spread_half(word);
          sum += values[2u * j + 1u] * spread_half(word >> 16u);
        }
        sums[r * kColumns + c] += dot(sum, vec4f(1.0)) * scale_at(i, n);
      }
    }
  }
  return sums;
}

fn total(s: u32, rows: u32) -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < rows; i += 1u) {
    sum += partials[i * kPartials + s];
  }
  return sum;
}

// Thread i adds `rows` rows of partials and stores element i of y, so those are at most wg_size.
fn add_and_store(place: Place, lane: u32, rows: u32) {
  let r = lane / kOut;
  let c = lane % kOut;
  let m = place.m0 + r;
  let n = place.n0 + c;
  if (lane >= kRows * kOut || m >= p.m || n >= select(p.n, p.n / 2u, kGated)) {
    return;
  }
  var factor = 1.0;
  if (kNormed) {
    factor = inverseSqrt(total(kPartials - kRows + r, rows) / f32(8u * p.words) + p.eps);
  }
  let sum = factor * total(r * kColumns + c, rows);
  if (kGated) {
    y[m * p.y_row + p.y_first + n] =
        T(swiglu(sum, factor * total(r * kColumns + c + kOut, rows)));
  } else {
    store(m, n, sum);
  }
}
