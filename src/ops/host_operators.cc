// SPDX-License-Identifier: BSD-3-Clause
#include "ops/host_operators.h"

#include <cmath>
#include <limits>

#include "graph/scalars.h"

namespace ptero::ops {
namespace {

using graph::elements;
using graph::HostCall;
using graph::HostTensor;
using graph::Shape;
using pte::ScalarType;

void resize(HostTensor& tensor, const Shape& shape) {
  tensor = graph::make_host_tensor(tensor.type, shape);
}

Error wrong_type(const HostTensor& tensor) {
  return make_error(ErrorCode::unsupported, "Element type ({}) has no host kernel.",
                    pte::name_of(tensor.type));
}

// y = a + alpha * b, broadcast. Integers wrap as in PyTorch.
template <typename T>
void add_elements(const HostTensor& a, const HostTensor& b, double alpha, HostTensor& y) {
  const auto a_strides = graph::broadcast_strides(a.shape, y.shape);
  const auto b_strides = graph::broadcast_strides(b.shape, y.shape);
  const auto a_values = elements<T>(a);
  const auto b_values = elements<T>(b);
  const auto y_values = elements<T>(y);
  for (size_t i = 0; i < y_values.size(); ++i) {
    size_t rest = i;
    size_t a_at = 0;
    size_t b_at = 0;
    for (size_t axis = y.shape.rank(); axis-- > 0;) {
      const size_t at = rest % y.shape[axis];
      rest /= y.shape[axis];
      a_at += at * a_strides[axis];
      b_at += at * b_strides[axis];
    }
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      y_values[i] = static_cast<T>(static_cast<Unsigned>(a_values[a_at]) +
                                   static_cast<Unsigned>(static_cast<int64_t>(alpha)) *
                                       static_cast<Unsigned>(b_values[b_at]));
    } else {
      y_values[i] = a_values[a_at] + static_cast<T>(alpha) * b_values[b_at];
    }
  }
}

Status add(const HostTensor& a, const HostTensor& b, double alpha, HostTensor& y) {
  PTERO_REJECT_IF(a.type != b.type || a.type != y.type, unsupported,
                  "Element types ({}, {} and {}) of an addition differ.", pte::name_of(a.type),
                  pte::name_of(b.type), pte::name_of(y.type));
  PTERO_ASSIGN_OR_RETURN(const Shape shape, graph::broadcast(a.shape, b.shape));
  resize(y, shape);
  switch (a.type) {
    case ScalarType::float32:
      add_elements<float>(a, b, alpha, y);
      return ok_status();
    case ScalarType::float64:
      add_elements<double>(a, b, alpha, y);
      return ok_status();
    case ScalarType::int32:
      add_elements<int32_t>(a, b, alpha, y);
      return ok_status();
    case ScalarType::int64:
      add_elements<int64_t>(a, b, alpha, y);
      return ok_status();
    default:
      return wrong_type(a);
  }
}

// aten::add.out [a, b, alpha, out]
Status add_out(HostCall& call) {
  PTERO_ASSIGN_OR_RETURN(const HostTensor* a, call.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const HostTensor* b, call.tensor(1));
  PTERO_ASSIGN_OR_RETURN(const double alpha, call.number(2));
  PTERO_ASSIGN_OR_RETURN(HostTensor * y, call.output(3));
  HostTensor result{y->type, {}, {}};
  PTERO_RETURN_IF_ERROR(add(*a, *b, alpha, result));
  *y = std::move(result);
  return ok_status();
}

// aten::add.Scalar_out [a, number, alpha, out]
Status add_scalar_out(HostCall& call) {
  PTERO_ASSIGN_OR_RETURN(const HostTensor* a, call.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const double number, call.number(1));
  PTERO_ASSIGN_OR_RETURN(const double alpha, call.number(2));
  PTERO_ASSIGN_OR_RETURN(HostTensor * y, call.output(3));
  HostTensor scalar{ScalarType::float64, {}, {}};
  resize(scalar, {});
  elements<double>(scalar)[0] = number;
  if (a->type == ScalarType::int64 || a->type == ScalarType::int32) {
    HostTensor whole{a->type, {}, {}};
    resize(whole, {});
    if (a->type == ScalarType::int64) {
      elements<int64_t>(whole)[0] = static_cast<int64_t>(number);
    } else {
      elements<int32_t>(whole)[0] = static_cast<int32_t>(number);
    }
    scalar = std::move(whole);
  } else {
    PTERO_ASSIGN_OR_RETURN(scalar, graph::convert(scalar, a->type));
  }
  HostTensor result{y->type, {}, {}};
  PTERO_RETURN_IF_ERROR(add(*a, scalar, alpha, result));
  *y = std::move(result);
  return ok_status();
}

// aten::copy_ [target, source, non_blocking]
Status copy_in_place(HostCall& call) {
  PTERO_ASSIGN_OR_RETURN(const HostTensor* source, call.tensor(1));
  PTERO_ASSIGN_OR_RETURN(HostTensor * target, call.output(0));
  PTERO_ASSIGN_OR_RETURN(*target, graph::convert(*source, target->type));
  return ok_status();
}

template <typename T>
void cumulate(HostTensor& y, size_t axis) {
  const auto values = elements<T>(y);
  const size_t inner = y.shape.numel(axis + 1, y.shape.rank());
  const size_t length = y.shape[axis];
  for (size_t i = inner; i < values.size(); ++i) {
    if (i / inner % length != 0) {
      values[i] = static_cast<T>(values[i] + values[i - inner]);
    }
  }
}

// aten::cumsum.out [x, dim, dtype, out]
Status cumsum_out(HostCall& call) {
  PTERO_ASSIGN_OR_RETURN(const HostTensor* x, call.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, call.integer(1));
  PTERO_ASSIGN_OR_RETURN(HostTensor * y, call.output(3));
  PTERO_ASSIGN_OR_RETURN(HostTensor sum, graph::convert(*x, y->type));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, sum.shape.rank()));
  switch (sum.type) {
    case ScalarType::float32:
      cumulate<float>(sum, axis);
      break;
    case ScalarType::float64:
      cumulate<double>(sum, axis);
      break;
    case ScalarType::int64:
      cumulate<int64_t>(sum, axis);
      break;
    default:
      return wrong_type(sum);
  }
  *y = std::move(sum);
  return ok_status();
}

template <typename T>
float weight_at(const HostTensor& weight, size_t i) {
  return static_cast<float>(elements<T>(weight)[i]);
}

// quantized_decomposed::embedding_byte.out
//   [weight [V, D], scales [V, G], zero_points?, quant_min, quant_max, indices, out]; dtype_out has
//   a dtype before out, which says what out says
// y = (weight - zero point) * scale, a scale for each D / G values of a row.
Status embedding_byte_out(HostCall& call) {
  PTERO_ASSIGN_OR_RETURN(const HostTensor* weight, call.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const HostTensor* scales, call.tensor(1));
  const HostTensor* zeros = nullptr;
  if (!call.is_null(2)) {
    PTERO_ASSIGN_OR_RETURN(zeros, call.tensor(2));
  }
  PTERO_ASSIGN_OR_RETURN(const HostTensor* indices, call.tensor(5));
  PTERO_ASSIGN_OR_RETURN(HostTensor * y, call.output(call.arg_count() - 1));
  const bool is_signed = weight->type == ScalarType::int8;
  PTERO_REJECT_IF(
      (!is_signed && weight->type != ScalarType::uint8) || scales->type != ScalarType::float32 ||
          y->type != ScalarType::float32 || indices->type != ScalarType::int64 ||
          (zeros != nullptr && zeros->type != ScalarType::float32 && zeros->type != weight->type),
      unsupported, "Element types of an 8-bit embedding have no host kernel.");
  PTERO_REJECT_IF(weight->shape.rank() != 2 || weight->shape.numel() == 0 ||
                      scales->shape.rank() < 1 || scales->shape.numel() == 0 ||
                      scales->shape[0] != weight->shape[0] ||
                      (zeros != nullptr && zeros->shape.numel() != scales->shape.numel()) ||
                      weight->shape[1] % (scales->shape.numel() / weight->shape[0]) != 0,
                  invalid_program, "Shapes {} and {} of an 8-bit embedding do not fit.",
                  to_string(weight->shape), to_string(scales->shape));
  const size_t rows = weight->shape[0];
  const size_t width = weight->shape[1];
  const size_t groups = scales->shape.numel() / rows;
  Shape shape = indices->shape;
  PTERO_REJECT_IF(shape.rank() == graph::kMaxRank, unsupported,
                  "Rank of the indices exceeds the limit ({}).", graph::kMaxRank - 1);
  shape.append(static_cast<uint32_t>(width));
  HostTensor result{y->type, {}, {}};
  resize(result, shape);
  const auto out = elements<float>(result);
  const auto wanted = elements<int64_t>(*indices);
  for (size_t i = 0; i < wanted.size(); ++i) {
    PTERO_REJECT_IF(wanted[i] < 0 || static_cast<uint64_t>(wanted[i]) >= rows, invalid_argument,
                    "Index ({}) of an embedding is not below the number of rows ({}).", wanted[i],
                    rows);
    const size_t row = static_cast<size_t>(wanted[i]);
    for (size_t d = 0; d < width; ++d) {
      const size_t group = row * groups + d / (width / groups);
      float zero = 0;
      if (zeros != nullptr) {
        zero = zeros->type == ScalarType::float32 ? elements<float>(*zeros)[group]
               : is_signed                        ? weight_at<int8_t>(*zeros, group)
                                                  : weight_at<uint8_t>(*zeros, group);
      }
      const size_t at = row * width + d;
      const float value =
          is_signed ? weight_at<int8_t>(*weight, at) : weight_at<uint8_t>(*weight, at);
      out[i * width + d] = (value - zero) * elements<float>(*scales)[group];
    }
  }
  *y = std::move(result);
  return ok_status();
}

// aten::sym_size.int [x, dim, out Int]
Status sym_size(HostCall& call) {
  PTERO_ASSIGN_OR_RETURN(const HostTensor* x, call.tensor(0));
  PTERO_ASSIGN_OR_RETURN(const int64_t dim, call.integer(1));
  PTERO_ASSIGN_OR_RETURN(const size_t axis, graph::normalize_axis(dim, x->shape.rank()));
  return call.set_integer(2, x->shape[axis]);
}

// executorch_prim::add.Scalar and the like [a, b, out Int]
graph::HostOperator integer_function(Result<int64_t> (*compute)(int64_t, int64_t)) {
  return [compute](HostCall& call) -> Status {
    PTERO_ASSIGN_OR_RETURN(const int64_t a, call.integer(0));
    PTERO_ASSIGN_OR_RETURN(const int64_t b, call.integer(1));
    PTERO_ASSIGN_OR_RETURN(const int64_t result, compute(a, b));
    return call.set_integer(2, result);
  };
}

}  // namespace

const graph::HostOperatorRegistry& host_operators() {
  static const graph::HostOperatorRegistry registry = {
      {"aten::add.out", add_out},
      {"aten::add.Scalar_out", add_scalar_out},
      {"aten::copy_", copy_in_place},
      {"aten::cumsum.out", cumsum_out},
      {"aten::sym_size.int", sym_size},
      {"executorch_prim::add.Scalar", integer_function(graph::add_integers)},
      {"executorch_prim::sub.Scalar", integer_function(graph::subtract_integers)},
      {"executorch_prim::mul.Scalar", integer_function(graph::multiply_integers)},
      {"executorch_prim::floordiv.Scalar", integer_function(graph::floor_divide_integers)},
      {"quantized_decomposed::embedding_byte.out", embedding_byte_out},
      {"quantized_decomposed::embedding_byte.dtype_out", embedding_byte_out},
  };
  return registry;
}

}  // namespace ptero::ops
