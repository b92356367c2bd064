// SPDX-License-Identifier: BSD-3-Clause
// Functions of one element whose built-in is missing, undefined for some arguments or too loose.

// Not const-expressions, in which WGSL forbids infinities and NaNs.
fn float_of(bits: u32) -> f32 {
  return bitcast<f32>(bits);
}

// By its bits: compilers may assume that x == x.
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// The nearest float16, ties to even; the conversions of WGSL may round either way, and what
// overflows is open.
fn half_bits(x: f32) -> u32 {
  let sign = (bitcast<u32>(x) >> 16u) & 0x8000u;
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits > 0x7f800000u) {
    return sign | 0x7e00u;
  }
  if (bits >= 0x477ff000u) { // from 65520
    return sign | 0x7c00u;
  }
  if (bits >= 0x38800000u) { // from 2^-14: normal
    return sign | ((bits - 0x38000000u + 0xfffu + ((bits >> 13u) & 1u)) >> 13u);
  }
  if (bits < 0x33000000u) { // below 2^-25
    return sign;
  }
  let mantissa = (bits & 0x7fffffu) | 0x800000u;
  let shift = 126u - (bits >> 23u);
  let whole = mantissa >> shift;
  let rest = mantissa & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  return sign | (whole + select(0u, 1u, rest > half || (rest == half && (whole & 1u) == 1u)));
}

// x^y with the special cases of IEEE 754.
fn power(x: f32, y: f32) -> f32 {
  if (y == 0.0 || x == 1.0) {
    return 1.0;
  }
  if (is_nan(x) || is_nan(y)) {
    return x + y;
  }
  let size = abs(x);
  let infinity = float_of(0x7f800000u);
  var result = 1.0;
  if (size == 0.0 || size == infinity) {
    result = select(infinity, 0.0, (size == 0.0) == (y > 0.0));
  } else if (size != 1.0) {
    result = exp2(y * log2(size));
  }
  if ((bitcast<u32>(x) & 0x80000000u) != 0u) {
    if (floor(y) != y) {
      return select(result, float_of(0x7fc00000u), size != 0.0 && size != infinity);
    }
    // From 2^24 on every float is even.
    if (abs(y) < 16777216.0 && (i32(y) & 1) == 1) {
      return -result;
    }
  }
  return result;
}

// Wraps as two's complement does. A negative exponent leaves what 1 / x^-n truncates to.
fn integer_power(x: i32, n: i32) -> i32 {
  if (n < 0) {
    return select(0, select(1, x, (n & 1) == 1), x == 1 || x == -1);
  }
  var result = 1;
  var factor = x;
  for (var rest = n; rest > 0; rest >>= 1u) {
    if ((rest & 1) == 1) {
      result *= factor;
    }
    factor *= factor;
  }
  return result;
}

// a - b * n without rounding the product, for n within 24 bits and a result small beside a. The
// factors are split into halves of 12 bits, since fma() need not be fused.
fn residual(a: f32, b: f32, n: f32) -> f32 {
  let b_high = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
  let n_high = bitcast<f32>(bitcast<u32>(n) & 0xfffff000u);
  let b_low = b - b_high;
  let n_low = n - n_high;
  return (((a - b_high * n_high) - b_high * n_low) - b_low * n_high) - b_low * n_low;
}

// |a / b| as an integer next to it, and how much of |a| that leaves: negative when it is above.
// Division may be off by some units in the last place, so its floor alone may be one off.
fn whole_quotient(a: f32, b: f32) -> vec2f {
  let n = round(abs(a / b));
  return vec2f(n, select(residual(abs(a), abs(b), n), abs(a), n == 0.0));
}

const kExactQuotient = 4194304.0; // beyond it the rounded quotient is as good

// The floor of the exact quotient, as PyTorch; infinities have no remainder and give NaN.
fn floor_quotient(a: f32, b: f32) -> f32 {
  if (abs(a) == float_of(0x7f800000u) && b != 0.0) {
    return float_of(0x7fc00000u);
  }
  let q = a / b;
  if (!(abs(q) < kExactQuotient)) {
    return floor(q);
  }
  let n = whole_quotient(a, b);
  let below = select(n.x, n.x - 1.0, n.y < 0.0);
  let negative = ((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u) != 0u;
  return select(below, -select(below + 1.0, below, n.y == 0.0), negative);
}

// The integer part of the quotient rounded to float32, as PyTorch: 1 / 0.1 is 10, though the float
// 0.1 is a little more than a tenth.
fn trunc_quotient(a: f32, b: f32) -> f32 {
  let q = a / b;
  if (!(abs(q) < kExactQuotient)) {
    return q;
  }
  let n = whole_quotient(a, b);
  var size = n.x;
  if (n.y < 0.0) {
    let before = bitcast<f32>(bitcast<u32>(n.x) - 1u);
    size -= select(0.0, 1.0, -n.y > abs(b) * ((n.x - before) * 0.5));
  }
  return select(size, -size, ((bitcast<u32>(a) ^ bitcast<u32>(b)) & 0x80000000u) != 0u);
}

// Floor of the quotient; WGSL defines division by 0 and of the smallest integer by -1.
fn integer_floor_quotient(a: i32, b: i32) -> i32 {
  return a / b - select(0, 1, a % b != 0 && (a < 0) != (b < 0));
}

// pi / 2 in pieces of 12 bits, and what is left.
const kPiece1 = 1.5703125;
const kPiece2 = 0.0004837512969970703;
const kPiece3 = 7.549533620476723e-08;
const kPiece4 = 2.5633440682570896e-12;

// sin(x + quadrants * pi / 2) to about 1e-6, where the built-in promises 2^-11 within [-pi, pi].
fn sine(x: f32, quadrants: i32) -> f32 {
  if (!(abs(x) < 1e7)) {
    return select(sin(x), cos(x), quadrants == 1);
  }
  // n * pi/2 comes off in products that are exact: halves of n times pieces of pi/2, 12 bits each.
  let n = round(x * 0.636619772);
  let high = round(n * 0.000244140625) * 4096.0;
  let low = n - high;
  var r = x - high * kPiece1 - low * kPiece1;
  r = r - high * kPiece2 - low * kPiece2;
  r = r - high * kPiece3 - low * kPiece3;
  r = r - n * kPiece4;
  // n may be one off when it is large.
  let more = round(r * 0.636619772);
  r = r - more * kPiece1 - more * kPiece2 - more * kPiece3;
  let z = r * r;
  let quadrant = i32(n) + i32(more) + quadrants;
  var result = r + r * z * ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1);
  if ((quadrant & 1) == 1) {
    result = 1.0 - 0.5 * z +
        z * z * ((2.443315712e-5 * z - 1.388731625e-3) * z + 4.166664568e-2);
  }
  return select(result, -result, (quadrant & 2) == 2);
}

// Error function to 1.5e-7 (Abramowitz and Stegun 7.1.26).
fn error_function(x: f32) -> f32 {
  let t = 1.0 / (1.0 + 0.3275911 * abs(x));
  let poly =
      ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  let size = 1.0 - poly * exp(-x * x);
  return select(size, -size, x < 0.0);
}
