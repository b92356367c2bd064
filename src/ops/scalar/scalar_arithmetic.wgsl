// SPDX-License-Identifier: BSD-3-Clause
// slots[p.result] = slots[p.a] (op) slots[p.b], or kNoScalar when that is not defined, does not fit
// or one of the two has no value. Only for integers that the host does not know. One thread.

const kNoScalar = -2147483647i - 1i;

struct Params {
  a: u32,
  b: u32,
  result: u32,
  op: u32,  // 0: add, 1: sub, 2: mul, 3: floordiv
}

@group(0) @binding(0) var<storage, read_write> slots: array<i32>;
@group(1) @binding(0) var<uniform> p: Params;

fn product(a: i32, b: i32) -> i32 {
  let x = u32(abs(a));
  let y = u32(abs(b));
  // Both below 2^31: 64 bits of the product from halves of 16.
  let middle = (x >> 16u) * (y & 0xffffu) + (x & 0xffffu) * (y >> 16u);
  let low = (x & 0xffffu) * (y & 0xffffu);
  let sum = (middle << 16u) + low;
  let carry = select(0u, 1u, sum < low);
  let high = (x >> 16u) * (y >> 16u) + (middle >> 16u) + carry;
  if (high != 0u || sum > 0x7fffffffu) {
    return kNoScalar;
  }
  return select(i32(sum), -i32(sum), (a < 0) != (b < 0));
}

fn quotient(a: i32, b: i32) -> i32 {
  if (b == 0) {
    return kNoScalar;
  }
  return a / b - select(0, 1, a % b != 0 && (a < 0) != (b < 0));
}

fn compute(a: i32, b: i32) -> i32 {
  switch (p.op) {
    case 0u: {
      let sum = a + b;
      return select(sum, kNoScalar, ((a ^ sum) & (b ^ sum)) < 0);
    }
    case 1u: {
      let rest = a - b;
      return select(rest, kNoScalar, ((a ^ b) & (a ^ rest)) < 0);
    }
    case 2u: {
      return product(a, b);
    }
    default: {
      return quotient(a, b);
    }
  }
}

@compute @workgroup_size(1)
fn main() {
  let a = slots[p.a];
  let b = slots[p.b];
  if (a == kNoScalar || b == kNoScalar) {
    slots[p.result] = kNoScalar;
  } else {
    slots[p.result] = compute(a, b);
  }
}
