// SPDX-License-Identifier: BSD-3-Clause
// Dense products: mm, bmm, addmm and linear. One kernel; a matrix that is too large for a binding
// is taken in blocks of rows, over several dispatches.
#include <array>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "graph/op_call.h"
#include "graph/operator.h"
#include "ops/common/kernel_types.h"
#include "ops/common/rows.h"
#include "ops/matmul/matmul.wgsl.h"

namespace ptero::ops {
namespace {

using graph::BufferRef;
using graph::OpCall;
using graph::Shape;
using graph::TensorRef;

constexpr uint32_t kHasBias = 1;  // as in the kernel
constexpr uint32_t kAddToY = 2;
constexpr uint64_t kSide = 8;
constexpr uint64_t kTileN = 32;

// y[batch] = alpha * a[batch] b[batch] + beta * bias, with a [m, k], b [k, n] or [n, k], and a bias
// that broadcasts to [m, n]. More than one batch comes without a bias.
struct Product {
  TensorRef a;
  TensorRef b;
  TensorRef y;
  std::optional<TensorRef> bias;
  uint64_t batches = 1;
  uint64_t m = 0;
  uint64_t n = 0;
  uint64_t k = 0;
  bool b_rows_are_n = false;
  double alpha = 1;
  double beta = 1;
};

// Part of a product: some batches, some rows of a and y, and some rows of b (of n or of k).
struct Part {
  RowBlock batches;
  RowBlock m;
  RowBlock b_rows;
};

Status dispatch_part(OpCall& op, const Product& product, const ElementType& type, uint64_t item,
                     const Part& part) {
  const RowBlock whole_n{0, product.n};
  const RowBlock whole_k{0, product.k};
  const RowBlock n = product.b_rows_are_n ? part.b_rows : whole_n;
  const RowBlock k = product.b_rows_are_n ? whole_k : part.b_rows;
  // In units of a row, or of a matrix when there are several.
  const bool batched = product.batches > 1;
  const uint64_t rows = batched ? product.m : 1;
  const RowBlock outer = batched ? part.batches : part.m;
  const RowBlock inner = batched ? part.batches : part.b_rows;
  const uint64_t b_row =
      batched ? product.n * product.k : (product.b_rows_are_n ? product.k : product.n);

  const auto u32 = [](uint64_t value) { return static_cast<uint32_t>(value); };
  wgsl::MatmulParams params{
      .m = u32(part.m.count),
      .n = u32(n.count),
      .k = u32(k.count),
      .batches = u32(part.batches.count),
      .a_stride = u32(product.k),
      .a_first = u32(k.first),
      .b_k = u32(product.b_rows_are_n ? 1 : product.n),
      .b_n = u32(product.b_rows_are_n ? product.k : 1),
      .y_stride = u32(product.n),
      .y_first = u32(n.first),
      .bias_m = 0,
      .bias_n = 0,
      .alpha = static_cast<float>(product.alpha),
      .beta = static_cast<float>(product.beta),
      .flags = k.first > 0 ? kAddToY : 0,
  };
  const BufferRef a = bind_rows(product.a, outer, rows * product.k * item);
  BufferRef bias = a;
  if (product.bias && k.first == 0) {
    const TensorRef& tensor = *product.bias;
    const Shape target{u32(product.m), u32(product.n)};
    const auto strides = graph::broadcast_strides(tensor.shape, target);
    params.bias_m = strides[0];
    params.bias_n = strides[1];
    params.flags |= kHasBias;
    const uint64_t row_bytes = strides[0] * item;
    bias = row_bytes > 0 ? bind_rows(tensor, part.m, row_bytes)
                         : bind_rows(tensor, {0, 1}, tensor.bytes());
  }

  // Few rows of y, as in decoding, leave most of a tall tile idle.
  const uint32_t thread_rows = part.m.count <= kSide ? 1 : 4;
  const uint64_t tiles =
      part.batches.count * ceil_div(part.m.count, kSide * thread_rows) * ceil_div(n.count, kTileN);
  const auto grid = graph::fold_grid(tiles, op.device().limits);
  PTERO_REJECT_IF(!grid, unsupported, "Number of tiles ({}) of the product exceeds a grid.", tiles);
  gpu::KernelKey key{&wgsl::kMatmul,
                     fmt::format("{}const kRows = {}u;\n", type.alias(), thread_rows),
                     {{"b_rows_are_n", product.b_rows_are_n ? 1.0 : 0.0}},
                     type.features};
  return op.dispatch({std::move(key),
                      {a, bind_rows(product.b, inner, b_row * item), bias,
                       bind_rows(product.y, outer, rows * product.n * item)},
                      *grid},
                     params);
}

Status dispatch_product(OpCall& op, const Product& product) {
  PTERO_RETURN_IF_ERROR(require_same_type(product.a, product.b));
  PTERO_RETURN_IF_ERROR(require_same_type(product.a, product.y));
  PTERO_REJECT_IF(!product.a.is_float(), unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(product.a.dtype), product.a.id);
  PTERO_ASSIGN_OR_RETURN(const ElementType type, element_type(product.a));
  uint64_t bias_row = 0;
  const uint64_t item = product.a.dtype == pte::GraphDtype::float16 ? 2 : 4;
  if (product.bias) {
    PTERO_RETURN_IF_ERROR(require_same_type(product.a, *product.bias));
    const Shape target{static_cast<uint32_t>(product.m), static_cast<uint32_t>(product.n)};
    const auto common = graph::broadcast(product.bias->shape, target);
    PTERO_REJECT_IF(!common.ok() || *common != target, invalid_program,
                    "Shape {} of the addend does not broadcast to the product's [{}, {}].",
                    to_string(product.bias->shape), product.m, product.n);
    bias_row = graph::broadcast_strides(product.bias->shape, target)[0] * item;
  }
  if (product.y.numel() == 0) {
    return ok_status();
  }
  const gpu::Limits& limits = op.device().limits;
  if (product.batches > 1) {
    const std::array<uint64_t, 3> bytes = {
        product.m * product.k * item, product.n * product.k * item, product.m * product.n * item};
    PTERO_ASSIGN_OR_RETURN(const auto blocks, split_into_bindings("matrices of a batch",
                                                                  product.batches, bytes, limits));
    for (const RowBlock& batches : blocks) {
      const RowBlock b_rows{0, product.b_rows_are_n ? product.n : product.k};
      PTERO_RETURN_IF_ERROR(
          dispatch_part(op, product, type, item, {batches, {0, product.m}, b_rows}));
    }
    return ok_status();
  }
  const std::array<uint64_t, 3> m_bytes = {product.k * item, product.n * item, bias_row};
  PTERO_ASSIGN_OR_RETURN(const auto m_blocks,
                         split_into_bindings("rows of a product", product.m, m_bytes, limits));
  const uint64_t b_rows = product.b_rows_are_n ? product.n : product.k;
  const std::array<uint64_t, 1> b_bytes = {(product.b_rows_are_n ? product.k : product.n) * item};
  PTERO_ASSIGN_OR_RETURN(auto b_blocks,
                         split_into_bindings("rows of a matrix", b_rows, b_bytes, limits));
  if (b_blocks.empty()) {
    b_blocks.push_back({0, 0});  // k is 0: sums of nothing
  }
  for (const RowBlock& m : m_blocks) {
    for (const RowBlock& block : b_blocks) {
      PTERO_RETURN_IF_ERROR(dispatch_part(op, product, type, item, {{0, 1}, m, block}));
    }
  }
  return ok_status();
}

Status require_rank(const TensorRef& tensor, size_t rank) {
  PTERO_REJECT_IF(tensor.shape.rank() != rank, invalid_program,
                  "Rank ({}) of operand {} is not {}.", tensor.shape.rank(),
                  to_string(tensor.shape), rank);
  return ok_status();
}

Error shapes_do_not_meet(const TensorRef& a, const TensorRef& b) {
  return make_error(ErrorCode::invalid_program, "Shapes {} and {} cannot be multiplied.",
                    to_string(a.shape), to_string(b.shape));
}

// mm, and addmm's product.
Status plan_mm(OpCall& op, Product product) {
  const Shape& a = product.a.shape;
  const Shape& b = product.b.shape;
  PTERO_RETURN_IF_ERROR(require_rank(product.a, 2));
  PTERO_RETURN_IF_ERROR(require_rank(product.b, 2));
  if (a[1] != b[0]) {
    return shapes_do_not_meet(product.a, product.b);
  }
  product.m = a[0];
  product.n = b[1];
  product.k = a[1];
  PTERO_RETURN_IF_ERROR(op.set_shape(product.y, Shape{a[0], b[1]}));
  return dispatch_product(op, product);
}

Status plan_plain_mm(OpCall& op) {
  Product product;
  PTERO_ASSIGN_OR_RETURN(product.a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(product.b, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(product.y, op.output());
  return plan_mm(op, std::move(product));
}

// self, mat1, mat2, beta, alpha. A beta of 0 leaves self out, whatever it holds.
Status plan_addmm(OpCall& op) {
  Product product;
  PTERO_ASSIGN_OR_RETURN(const TensorRef self, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(product.a, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(product.b, op.tensor(2));
  PTERO_ASSIGN_OR_RETURN(product.beta, op.number_or(3, 1));
  PTERO_ASSIGN_OR_RETURN(product.alpha, op.number_or(4, 1));
  PTERO_ASSIGN_OR_RETURN(product.y, op.output());
  if (product.beta != 0) {
    product.bias = self;
  }
  return plan_mm(op, std::move(product));
}

Status plan_bmm(OpCall& op) {
  Product product;
  PTERO_ASSIGN_OR_RETURN(product.a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(product.b, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(product.y, op.output());
  const Shape& a = product.a.shape;
  const Shape& b = product.b.shape;
  PTERO_RETURN_IF_ERROR(require_rank(product.a, 3));
  PTERO_RETURN_IF_ERROR(require_rank(product.b, 3));
  if (a[0] != b[0] || a[2] != b[1]) {
    return shapes_do_not_meet(product.a, product.b);
  }
  product.batches = a[0];
  product.m = a[1];
  product.n = b[2];
  product.k = a[2];
  PTERO_RETURN_IF_ERROR(op.set_shape(product.y, Shape{a[0], a[1], b[2]}));
  return dispatch_product(op, product);
}

// x [..., K], w [N, K], bias [N] or Null.
Status plan_linear(OpCall& op) {
  Product product;
  PTERO_ASSIGN_OR_RETURN(product.a, op.tensor(0));
  PTERO_ASSIGN_OR_RETURN(product.b, op.tensor(1));
  PTERO_ASSIGN_OR_RETURN(product.bias, op.optional_tensor(2));
  PTERO_ASSIGN_OR_RETURN(product.y, op.output());
  const Shape& w = product.b.shape;
  PTERO_RETURN_IF_ERROR(require_rank(product.b, 2));
  Shape shape = product.a.shape;
  if (shape.rank() == 0 || shape[shape.rank() - 1] != w[1]) {
    return shapes_do_not_meet(product.a, product.b);
  }
  product.m = shape.numel(0, shape.rank() - 1);
  product.n = w[0];
  product.k = w[1];
  product.b_rows_are_n = true;
  shape.set(shape.rank() - 1, w[0]);
  PTERO_RETURN_IF_ERROR(op.set_shape(product.y, shape));
  return dispatch_product(op, product);
}

}  // namespace

void register_matmul(graph::OperatorRegistry& operators) {
  operators.add("aten.mm.default", plan_plain_mm);
  operators.add("aten.bmm.default", plan_bmm);
  operators.add("aten.addmm.default", plan_addmm);
  operators.add("aten.linear.default", plan_linear);
}

}  // namespace ptero::ops
