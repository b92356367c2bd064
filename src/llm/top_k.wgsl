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

override wg_size: u32 = 256;

const kHeader = 4u;

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

fn find_best(lane: u32) {
  var best = 0u;
  var id = 0u;
  for (var i = lane; i < p.count; i += wg_size) {
    let key = key_at(i);
    if (key == 0u) {
      atomicAdd(&nans, 1u);
    } else if (key > best) {
      best = key;
      id = i;
    }
  }
  best_keys[lane] = best;
  best_ids[lane] = id;
  workgroupBarrier();
  if (lane == 0u) {
    for (var i = 1u; i < wg_size; i++) {
      if (best_keys[i] > best || (best_keys[i] == best && best_ids[i] < id && best != 0u)) {
        best = best_keys[i];
        id = best_ids[i];
      }
    }
    best_keys[0] = best;
    found[0] = id;
    found[1] = atomicLoad(&nans);
    found[2] = bits_of(best);
    next_token[0] = i32(id);
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
  let largest = bitcast<f32>(bits_of(workgroupUniformLoad(&best_keys[0])));

  var sum = 0.0;
  for (var i = lane; i < p.count; i += wg_size) {
    sum += exp(f32(logits[p.first + i]) - largest);
  }
  sums[lane] = sum;
  workgroupBarrier();
  if (lane == 0u) {
    for (var i = 1u; i < wg_size; i++) {
      sum += sums[i];
    }
    found[3] = bitcast<u32>(sum);
    state = vec3u(0u, p.k, 0u);
    found[kHeader] = found[0];
    found[kHeader + 1u] = found[2];
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
