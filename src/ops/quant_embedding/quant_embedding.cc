// SPDX-License-Identifier: BSD-3-Clause
// Look-ups in a table of 4-bit weights.
#include <algorithm>
#include <array>
#include <vector>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/quant_embedding/q4_embedding.wgsl.h"

namespace ptero::ops {
namespace {

using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

// A packed table and its scales: [V, at least D / 2] bytes and [at least V, at least D / group].
struct Table {
  TensorRef weight;
  TensorRef scales;
  uint64_t width = 0;  // D
  uint64_t group = 0;
};

Status check_table(const Table& table) {
  const Shape& weight = table.weight.shape;
  const Shape& scales = table.scales.shape;
  PTERO_REJECT_IF(
      table.weight.dtype != pte::GraphDtype::uint8 && table.weight.dtype != pte::GraphDtype::int8,
      unsupported, "Element type ({}) of packed weights in tensor {} is not a byte.",
      pte::name_of(table.weight.dtype), table.weight.id);
  PTERO_REJECT_IF(!table.scales.is_float(), unsupported,
                  "Element type ({}) of scales in tensor {} has no kernel in this operator.",
                  pte::name_of(table.scales.dtype), table.scales.id);
  PTERO_REJECT_IF(weight.rank() != 2 || scales.rank() != 2 || scales[0] < weight[0],
                  invalid_program, "Shapes {} of packed weights and {} of scales are no table.",
                  to_string(weight), to_string(scales));
  PTERO_REJECT_IF(weight[0] == 0, invalid_argument, "Table {} (shape {}) has nothing to index.",
                  table.weight.id, to_string(weight));
  PTERO_REJECT_IF(uint64_t{weight[1]} * 2 < table.width, invalid_program,
                  "A row of the packed weights ({} bytes) holds fewer elements than y ({}).",
                  weight[1], table.width);
  PTERO_REJECT_IF(scales[1] < ceil_div(table.width, table.group), invalid_program,
                  "Number of scales ({}) in a row is below that of its groups ({}).", scales[1],
                  ceil_div(table.width, table.group));
  return ok_status();
}

// weight, scales, group_size, indices, is_linear_weight: whether the first weight of a byte is in
// its low half, as in linear layers
Status plan_embedding(OpCall& op) {
  Table table;
  PTERO_ASSIGN_OR_RETURN(table.weight, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(table.scales, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const int64_t group_size, op.integer(2));
  PTERO_ASSIGN_OR_RETURN(const TensorRef indices, op.tensor(3));
  PTERO_ASSIGN_OR_RETURN(const bool low_first, op.boolean(4));
  PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
  PTERO_REJECT_IF(group_size < 1, invalid_program, "Group size ({}) is below 1.", group_size);
  PTERO_REJECT_IF(indices.dtype != pte::GraphDtype::int32, unsupported,
                  "Element type ({}) of indices in tensor {} is not int32.",
                  pte::name_of(indices.dtype), indices.id);
  PTERO_REJECT_IF(!y.is_float(), unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(y.dtype), y.id);
  const Shape bound = op.bound(y);
  PTERO_REJECT_IF(bound.rank() != indices.shape.rank() + 1, invalid_program,
                  "Rank ({}) of an embedding of {} is not one above.", bound.rank(),
                  to_string(indices.shape));
  table.width = bound[bound.rank() - 1];
  table.group = std::min(static_cast<uint64_t>(group_size), std::max<uint64_t>(table.width, 1));
  PTERO_RETURN_IF_ERROR(check_table(table));
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(y));
  PTERO_ASSIGN_OR_RETURN(const ElementType scale_type, element_type(table.scales));
  Shape shape = indices.shape;
  shape.append(static_cast<uint32_t>(table.width));
  PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
  if (y.numel() == 0) {
    return ok_status();
  }

  const uint32_t length = table.weight.shape[0];
  const uint64_t w_row = table.weight.shape[1];
  const uint64_t s_row = table.scales.shape[1];
  const uint64_t s_bytes = s_row * (table.scales.dtype == pte::GraphDtype::float16 ? 2 : 4);
  PTERO_ASSIGN_OR_RETURN(const auto blocks,
                         split_into_bindings("rows of a table", length, std::array{w_row, s_bytes},
                                             op.device().limits));
  PTERO_ASSIGN_OR_RETURN(const gpu::Grid grid, linear_grid(op, y.numel()));
  const gpu::KernelKey key{
      .source = &wgsl::kQ4Embedding,
      .prelude = fmt::format("{}alias S = {};\n", type.alias(), scale_type.name),
      .overrides = {{"swapped", low_first ? 0.0 : 1.0}},
      .features = type.features | scale_type.features};
  for (const RowBlock& block : blocks) {
    PTERO_RETURN_IF_ERROR(
        op.dispatch({key,
                     {bind_rows(table.weight, block, w_row),
                      bind_rows(table.scales, block, s_bytes), indices, y},
                     grid},
                    wgsl::Q4EmbeddingParams{.n = static_cast<uint32_t>(y.numel()),
                                            .width = static_cast<uint32_t>(table.width),
                                            .w_row = static_cast<uint32_t>(w_row),
                                            .group = static_cast<uint32_t>(table.group),
                                            .s_row = static_cast<uint32_t>(s_row),
                                            .length = length,
                                            .first = static_cast<uint32_t>(block.first),
                                            .rows = static_cast<uint32_t>(block.count)}));
  }
  return ok_status();
}

}  // namespace

void register_quant_embedding(graph::OperatorRegistry& operators) {
  operators.add("et_vk.embedding_q4gsw.default", plan_embedding);
}

}  // namespace ptero::ops
