// SPDX-License-Identifier: BSD-3-Clause
// What the attention kernels share: which keys a query sees, and where it lies. A head of k and v
// serves p.group heads of q, so the queries of such a group are taken together: query r of head h
// of k is row r / p.group of head h * p.group + r % p.group of q. A kernel binds slots, array<i32>.
struct Params {
  rows: u32, // of q, in each head
  heads: u32, // of k and v
  group: u32, // heads of q for each of these
  keys: u32, // rows of k and v
  q_row: u32, // vec4s of q and y from one row to the next
  q_head: u32,
  kv_row: u32,
  kv_head: u32,
  mask_row: u32, // elements, 0 to repeat one
  mask_head: u32,
  slot: u32, // where slots holds the position of row 0
  splits: u32, // of the keys, where a kernel makes parts
  scale: f32,
}

@group(1) @binding(0) var<uniform> p: Params;

override causal: bool = true; // a row sees the keys up to its own position
override positioned: bool = true; // row 0 is at slots[p.slot], and no row sees beyond the last one's

// Bounds of finite scores. The largest score so far starts at the lowest: no infinity is ever
// subtracted from another.
const kLowest = -3.4028234e38;
const kHighest = 3.4028234e38;

fn position() -> u32 {
  if (!positioned) {
    return 0u;
  }
  return u32(clamp(slots[p.slot], 0, i32(p.keys) - i32(min(p.rows, p.keys))));
}

// How many keys row `row` sees.
fn keys_of(first: u32, row: u32) -> u32 {
  if (causal) {
    return min(first + row + 1u, p.keys);
  }
  return select(p.keys, min(first + p.rows, p.keys), positioned);
}

fn query_row(r: u32) -> u32 {
  return r / p.group;
}
fn query_head(head: u32, r: u32) -> u32 {
  return head * p.group + r % p.group;
}
fn query_at(head: u32, r: u32) -> u32 {
  return query_row(r) * p.q_row + query_head(head, r) * p.q_head;
}
// Where a scratch buffer has what belongs to a query.
fn query_index(head: u32, r: u32) -> u32 {
  return head * p.rows * p.group + r;
}

// The queries of a workgroup: r0 to last, of one head of k and v. None sees a key from end on.
struct Block {
  head: u32, // p.heads or more for a workgroup that the grid has too many
  r0: u32,
  last: u32,
  first: u32, // position of row 0
  end: u32,
}

// Workgroup `number` of those that take up to `queries` each. Of a head the last queries come
// first, since they see the most keys.
fn block_of(number: u32, queries: u32) -> Block {
  let count = p.rows * p.group;
  let blocks = (count + queries - 1u) / queries;
  let r0 = (blocks - 1u - number % blocks) * queries;
  let last = min(r0 + queries, count) - 1u;
  let first = position();
  return Block(number / blocks, r0, last, first, keys_of(first, query_row(last)));
}

// Its i-th query; the last one where it has less.
fn query_of(block: Block, i: u32) -> u32 {
  return min(block.r0 + i, block.last);
}
fn keys_of_query(block: Block, r: u32) -> u32 {
  return keys_of(block.first, query_row(r));
}
