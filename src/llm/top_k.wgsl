// SPDX-License-Identifier: BSD-3-Clause
// The p.k largest of p.count logits, after p.adjustments of them are changed in place, and what the
// host needs to know of the rest. One workgroup, which finds the k-th largest by its bits, eight at
// a time from the top, as in a radix sort.
// Prelude: T, the type of the logits; kLowest, its lowest number.

struct Params {
  first: u32,  // element of `logits` where the row begins
  count: u32,
  k: u32,
  adjustments: u32,
}

struct Adjustment {
  id: u32,
  scale: f32,
  offset: f32,
}

// found: [id of the largest, NaNs, bits of the largest, bits of sum(exp(logit - largest))], then k
// pairs of id and bits, in no order.
@group(0) @binding(0) var<storage, read_write> logits: array<T>;
@group(0) @binding(1) var<storage, read> adjust: array<Adjustment>;
@group(0) @binding(2) var<storage, read_write> found: array<u32>;
@group(0) @binding(3) var<storage, read_write> next_token: array<i32>;
@group(1) @binding(0) var<uniform> p: Params;

override wg_size: u32 = 256;  // a power of two

const kHeader = 4u;
const kBatch = 8u;
const kFloor = -3.4028234e38;

var<workgroup> histogram: array<atomic<u32>, 256>;
var<workgroup> best_keys: array<u32, wg_size>;
var<workgroup> best_ids: array<u32, wg_size>;
var<workgroup> sums: array<f32, wg_size>;
var<workgroup> nans: atomic<u32>;
var<workgroup> taken: atomic<u32>;
var<workgroup> state: vec3u;  // prefix of the k-th largest, how many of its group to take, its group

// Orders floats as unsigned integers; NaN comes last.
fn key_of(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return 0u;
  }
  return bits ^ select(0x80000000u, 0xffffffffu, (bits & 0x80000000u) != 0u);
}

fn bits_of(key: u32) -> u32 {
  return key ^ select(0xffffffffu, 0x80000000u, (key & 0x80000000u) != 0u);
}

fn key_at(i: u32) -> u32 {
  return key_of(f32(logits[p.first + i]));
}

fn take(i: u32, key: u32) {
  let slot = atomicAdd(&taken, 1u);
  if (slot < p.k) {
    found[kHeader + 2u * slot] = i;
    found[kHeader + 2u * slot + 1u] = bits_of(key);
  }
}

// What a key's value is subtracted for in sums: never minus infinity, which less itself is NaN.
fn top_of(key: u32) -> f32 {
  return select(max(bitcast<f32>(bits_of(key)), kFloor), kFloor, key == 0u);
}

// The largest of the row, its first id, and sum(exp(logit - largest)), in lane 0's places. One look
// at each logit: loads of a batch are under way together, and a sum is scaled when a larger logit
// comes.
fn find_best(lane: u32) {
  var best = 0u;
  var id = 0u;
  var sum = 0.0;
  for (var start = lane; start < p.count; start += wg_size * kBatch) {
    var values: array<f32, kBatch>;
    for (var j = 0u; j < kBatch; j++) {
      values[j] = f32(logits[p.first + min(start + j * wg_size, p.count - 1u)]);
    }
    let before = top_of(best);
    for (var j = 0u; j < kBatch; j++) {
      let i = start + j * wg_size;
      let key = key_of(values[j]);
      if (i < p.count && key == 0u) {
        atomicAdd(&nans, 1u);
      } else if (i < p.count && key > best) {
        best = key;
        id = i;
      }
    }
    let top = top_of(best);
    sum *= exp(before - top);
    for (var j = 0u; j < kBatch; j++) {
      sum += select(0.0, exp(values[j] - top), start + j * wg_size < p.count);
    }
  }
  best_keys[lane] = best;
  best_ids[lane] = id;
  sums[lane] = sum;
  for (var half = wg_size / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
      let a = best_keys[lane];
      let b = best_keys[lane + half];
      let top = top_of(max(a, b));
      sums[lane] = sums[lane] * exp(top_of(a) - top) + sums[lane + half] * exp(top_of(b) - top);
      if (b > a || (b == a && best_ids[lane + half] < best_ids[lane])) {
        best_keys[lane] = b;
        best_ids[lane] = best_ids[lane + half];
      }
    }
  }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(local_invocation_index) lane: u32) {
  for (var i = lane; i < p.adjustments; i += wg_size) {
    let change = adjust[i];
    let value = f32(logits[p.first + change.id]);
    let scaled = select(value * change.scale, value / change.scale, value > 0.0);
    logits[p.first + change.id] = T(max(scaled + change.offset, kLowest));
  }
  storageBarrier();
  find_best(lane);
  workgroupBarrier();
  if (lane == 0u) {
    found[0] = best_ids[0];
    found[1] = atomicLoad(&nans);
    found[2] = bits_of(best_keys[0]);
    found[3] = bitcast<u32>(sums[0]);
    found[kHeader] = found[0];
    found[kHeader + 1u] = found[2];
    next_token[0] = i32(best_ids[0]);
    state = vec3u(0u, p.k, 0u);
  }
  if (p.k == 1u) {
    return;  // the largest is all
  }

  for (var shift = 24u; shift < 32u; shift -= 8u) {
    let mask = select(0xffffffffu << (shift + 8u), 0u, shift == 24u);
    workgroupBarrier();  // the one before was looked at
    for (var i = lane; i < 256u; i += wg_size) {
      atomicStore(&histogram[i], 0u);
    }
    let prefix = workgroupUniformLoad(&state).x;
    for (var i = lane; i < p.count; i += wg_size) {
      let key = key_at(i);
      if ((key & mask) == prefix) {
        atomicAdd(&histogram[(key >> shift) & 255u], 1u);
      }
    }
    workgroupBarrier();
    if (lane == 0u) {
      var left = state.y;
      var digit = 255u;
      loop {
        let here = atomicLoad(&histogram[digit]);
        if (here >= left || digit == 0u) {
          state = vec3u(prefix | (digit << shift), left, here);
          break;
        }
        left -= here;
        digit -= 1u;
      }
    }
  }
  let last = workgroupUniformLoad(&state);
  // All above the k-th largest, and of those equal to it the first by id.
  for (var i = lane; i < p.count; i += wg_size) {
    let key = key_at(i);
    if (key > last.x || (key == last.x && last.z <= last.y)) {
      take(i, key);
    }
  }
  if (last.z > last.y && lane == 0u) {
    var left = last.y;
    for (var i = 0u; i < p.count && left > 0u; i++) {
      if (key_at(i) == last.x) {
        take(i, last.x);
        left -= 1u;
      }
    }
  }
}
