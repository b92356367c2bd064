// SPDX-License-Identifier: BSD-3-Clause
// Takes rows [queries | keys | values] apart: queries are rotated, keys are rotated into their
// cache, values are copied into theirs. What rotating means: see rotary.wgsl. One thread a pair of
// elements. Prelude: T (qkv, yq), F (cos, sin) and C (caches).
//#include "ops/common/linear_part.wgsl"

struct Params {
  rows: u32,
  q_heads: u32,
  kv_heads: u32,
  dim: u32, // elements of a head, all of them rotated
  table_rows: u32,
  table_row: u32, // elements
  capacity: u32, // rows of a cache
  slot: u32, // of the first row's place in the caches
  table_slot: u32, // and in the tables, if positioned
}

@group(0) @binding(0) var<storage, read> qkv: array<T>;
@group(0) @binding(1) var<storage, read> cosines: array<F>;
@group(0) @binding(2) var<storage, read> sines: array<F>;
@group(0) @binding(3) var<storage, read> slots: array<i32>;
@group(0) @binding(4) var<storage, read_write> yq: array<T>;
@group(0) @binding(5) var<storage, read_write> k_cache: array<C>;
@group(0) @binding(6) var<storage, read_write> v_cache: array<C>;
@group(1) @binding(0) var<uniform> p: Params;

override halves: bool = false; // a pair's second element is half a head further
override positioned: bool = false; // row 0 takes the tables' row in a slot

fn place(slot: u32, most: u32) -> u32 {
  return u32(clamp(slots[slot], 0, i32(most)));
}

@compute @workgroup_size(kThreads)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let pair = linear_index(id, groups);
  let half = p.dim / 2u;
  let heads = p.q_heads + 2u * p.kv_heads;
  let row = pair / (heads * half);
  if (row >= p.rows) {
    return;
  }
  let head = pair / half % heads;
  let i = pair % half;
  let within = select(vec2u(2u * i, 2u * i + 1u), vec2u(i, i + half), halves);
  let source = (row * heads + head) * p.dim + within;
  var v = vec2f(f32(qkv[source.x]), f32(qkv[source.y]));
  if (head < p.q_heads + p.kv_heads) {
    var table = row;
    if (positioned) {
      table += place(p.table_slot, p.table_rows - p.rows);
    }
    let one = table * p.table_row + i;
    let other = one + select(0u, half, halves);
    let c = vec2f(f32(cosines[one]), f32(cosines[other]));
    let s = vec2f(f32(sines[one]), f32(sines[other]));
    v = vec2f(v.x * c.x - v.y * s.x, v.y * c.y + v.x * s.y);
  }
  if (head < p.q_heads) {
    let to = (row * p.q_heads + head) * p.dim + within;
    yq[to.x] = T(v.x);
    yq[to.y] = T(v.y);
    return;
  }
  let in_cache = place(p.slot, p.capacity - p.rows) + row;
  let is_key = head < p.q_heads + p.kv_heads;
  let kv_head = head - p.q_heads - select(p.kv_heads, 0u, is_key);
  let to = (in_cache * p.kv_heads + kv_head) * p.dim + within;
  if (is_key) {
    k_cache[to.x] = C(v.x);
    k_cache[to.y] = C(v.y);
  } else {
    v_cache[to.x] = C(v.x);
    v_cache[to.y] = C(v.y);
  }
}
