// SPDX-License-Identifier: BSD-3-Clause
// Rotary position embeddings of queries and keys.
#include <optional>
#include <string_view>

#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/rotary/rotary.wgsl.h"
#include "ops/rotary/rotary_cache.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// x [..., rows, heads, dim]
struct Heads {
  uint32_t rows = 0;
  uint32_t heads = 0;
  uint32_t dim = 0;
};
Result<Heads> heads_of(const TensorRef& x) {
  const size_t rank = x.shape.rank();
  PTERO_REJECT_IF(rank < 3, invalid_program,
                  "Rank ({}) of tensor {} is below 3 ([..., rows, heads, elements]).", rank, x.id);
  return Heads{x.shape[rank - 3], x.shape[rank - 2], x.shape[rank - 1]};
}

struct Rotation {
  TensorRef q;
  TensorRef yq;
  std::optional<TensorRef> k;
  std::optional<TensorRef> yk;
  TensorRef cosines;
  TensorRef sines;
  std::optional<graph::Slot> position;
  bool halves = false;
};

Status dispatch_rotation(OpCall& op, const Rotation& rotation, wgsl::RotaryParams params) {
  PTERO_RETURN_IF_ERROR(require_float(rotation.q));
  PTERO_RETURN_IF_ERROR(require_float(rotation.cosines));
  PTERO_RETURN_IF_ERROR(require_same_type(rotation.q, rotation.yq));
  PTERO_REJECT_IF(params.dim % 2 != 0 || params.rotated % 2 != 0 || params.rotated > params.dim,
                  invalid_program,
                  "Number of elements to rotate ({}) is odd, or does not fit into those of a head "
                  "({}), which is even.",
                  params.rotated, params.dim);
  PTERO_REJECT_IF(params.table_rows < params.rows, invalid_program,
                  "Number of rows ({}) exceeds those of the tables ({}).", params.rows,
                  params.table_rows);
  const uint64_t pairs = (rotation.q.numel() + (rotation.k ? rotation.k->numel() : 0)) / 2;
  if (pairs == 0) {
    return ok_status();
  }
  params.q_pairs = static_cast<uint32_t>(rotation.q.numel() / 2);
  params.k_pairs = static_cast<uint32_t>(pairs) - params.q_pairs;
  if (rotation.position) {
    params.slot = rotation.position->index;
  }
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(rotation.q));
  PTERO_ASSIGN_OR_RETURN(const ElementType table, element_type(rotation.cosines));
  BufferRef yk(rotation.yq);
  if (rotation.yk) {
    yk = BufferRef(*rotation.yk);
  } else {
    PTERO_ASSIGN_OR_RETURN(yk, op.scratch(4));  // what is written is bound once
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, pairs));
  return op.dispatch(
      {{&wgsl::kRotary,
        fmt::format("{}alias F = {};\n", type.alias(), table.name),
        {{"halves", rotation.halves ? 1.0 : 0.0}, {"positioned", rotation.position ? 1.0 : 0.0}},
        type.features | table.features},
       {rotation.q, rotation.k.value_or(rotation.q), rotation.cosines, rotation.sines,
        rotation.position ? op.slots() : BufferRef(rotation.q), rotation.yq, yk},
       grid},
      params);
}

// xq, xk, cos, sin; produces both rotated
Result<Rotation> read_both(OpCall& op) {
  Rotation rotation;
  PTERO_ASSIGN_OR_RETURN(rotation.q, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(rotation.k, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(rotation.cosines, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(rotation.sines, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(rotation.yq, op.output(0));
  PTERO_ASSIGN_OR_RETURN(rotation.yk, op.output(1));
  PTERO_RETURN_IF_ERROR(require_same_type(rotation.q, *rotation.k));
  PTERO_RETURN_IF_ERROR(require_same_type(rotation.q, *rotation.yk));
  PTERO_RETURN_IF_ERROR(op.set_shape(rotation.yq, rotation.q.shape));
  PTERO_RETURN_IF_ERROR(op.set_shape(*rotation.yk, rotation.k->shape));
  return rotation;
}

Result<wgsl::RotaryParams> both_params(const Rotation& rotation) {
  PTERO_ASSIGN_OR_RETURN(const Heads q, heads_of(rotation.q));
  PTERO_ASSIGN_OR_RETURN(const Heads k, heads_of(*rotation.k));
  PTERO_ASSIGN_OR_RETURN(const RotaryTable table, rotary_table(rotation.cosines, rotation.sines));
  PTERO_REJECT_IF(q.rows != k.rows || q.dim != k.dim, invalid_program,
                  "Queries and keys ({} and {}) do not have the same rows and heads of one size.",
                  to_string(rotation.q.shape), to_string(rotation.k->shape));
  return wgsl::RotaryParams{.q_heads = q.heads,
                            .k_heads = k.heads,
                            .dim = q.dim,
                            .rows = q.rows,
                            .table_rows = table.rows,
                            .table_row = table.width,
                            .table_step = 1};
}

// Neighbours are pairs. A table has a row for each of x's, with an element for each pair.
Status plan_rotary(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(const Rotation rotation, read_both(op));
  PTERO_ASSIGN_OR_RETURN(wgsl::RotaryParams params, both_params(rotation));
  PTERO_REJECT_IF(params.table_row > params.dim / 2, invalid_program,
                  "Number of pairs in the tables ({}) exceeds those of a head ({}).",
                  params.table_row, params.dim / 2);
  params.rotated = 2 * params.table_row;
  return dispatch_rotation(op, rotation, params);
}

// Halves are pairs. A table has a row for each position, with an element for each of the head's
// that is rotated; start_pos says which row comes first.
Status plan_rotary_hf(OpCall& op) {
  PTERO_ASSIGN_OR_RETURN(Rotation rotation, read_both(op));
  PTERO_ASSIGN_OR_RETURN(wgsl::RotaryParams params, both_params(rotation));
  params.rotated = params.table_row;
  rotation.halves = true;
  PTERO_REJECT_IF(params.table_rows < params.rows, invalid_program,
                  "Number of rows ({}) exceeds those of the tables ({}).", params.rows,
                  params.table_rows);
  PTERO_ASSIGN_OR_RETURN(rotation.position,
                         op.slot(4, 0, int64_t{params.table_rows} - int64_t{params.rows}));
  return dispatch_rotation(op, rotation, params);
}

// x [..., rows, elements], freqs: for each row and pair of neighbours a cosine and a sine
Status plan_rotary_interleaved(OpCall& op) {
  Rotation rotation;
  PTERO_ASSIGN_OR_RETURN(rotation.q, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(rotation.cosines, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(rotation.yq, op.output());
  rotation.sines = rotation.cosines;
  const Shape& shape = rotation.q.shape;
  const size_t rank = shape.rank();
  PTERO_REJECT_IF(rank < 2, invalid_program, "Rank ({}) of tensor {} is below 2.", rank,
                  rotation.q.id);
  const uint32_t width = shape[rank - 1];
  const uint64_t given = rotation.cosines.numel();
  PTERO_REJECT_IF(width == 0 || given % width != 0, invalid_program,
                  "Number of cosines and sines ({}) does not divide into rows of {}.", given,
                  width);
  PTERO_RETURN_IF_ERROR(op.set_shape(rotation.yq, shape));
  return dispatch_rotation(op, rotation,
                           wgsl::RotaryParams{.q_heads = 1,
                                              .k_heads = 1,
                                              .dim = width,
                                              .rotated = width,
                                              .rows = shape[rank - 2],
                                              .table_rows = static_cast<uint32_t>(given / width),
                                              .table_row = width,
                                              .table_step = 2,
                                              .sin_from = 1});
}

}  // namespace

Result<RotaryTable> rotary_table(const TensorRef& cosines, const TensorRef& sines) {
  const size_t rank = cosines.shape.rank();
  PTERO_REJECT_IF(cosines.shape != sines.shape || rank < 2, invalid_program,
                  "Tables of cosines and sines ({} and {}) are not of one shape of rows.",
                  to_string(cosines.shape), to_string(sines.shape));
  PTERO_RETURN_IF_ERROR(require_same_type(cosines, sines));
  return RotaryTable{static_cast<uint32_t>(cosines.shape.numel(0, rank - 1)),
                     cosines.shape[rank - 1]};
}

void register_rotary(graph::OperatorRegistry& operators) {
  operators.add("et_vk.apply_rotary_emb.default", plan_rotary);
  operators.add("et_vk.apply_rotary_emb_hf.default", plan_rotary_hf);
  operators.add("et_vk.apply_rotary_emb_interleaved.default", plan_rotary_interleaved);
  operators.add("ptero.rotary_kv_cache.default", plan_rotary_kv_cache, {.mutates = {3, 4}});
}

}  // namespace ptero::ops
