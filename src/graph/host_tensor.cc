// SPDX-License-Identifier: BSD-3-Clause
#include "graph/host_tensor.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/half.h"

namespace ptero::graph {
namespace {

using pte::ScalarType;

template <typename To, typename From, typename Function>
HostTensor map_all(const HostTensor& tensor, ScalarType type, Function&& function) {
  HostTensor result = make_host_tensor(type, tensor.shape);
  const std::span<const From> from = elements<From>(tensor);
  std::transform(from.begin(), from.end(), elements<To>(result).begin(), function);
  return result;
}

template <typename To, typename From>
HostTensor cast_all(const HostTensor& tensor, ScalarType type) {
  return map_all<To, From>(tensor, type, [](From value) { return static_cast<To>(value); });
}

}  // namespace

HostTensor make_host_tensor(ScalarType type, const Shape& shape) {
  return {type, shape, std::vector<std::byte>(shape.numel() * pte::element_size(type).value_or(0))};
}

Result<HostTensor> convert(const HostTensor& tensor, ScalarType type) {
  if (tensor.type == type) {
    return tensor;
  }
  if (tensor.type == ScalarType::int64 && type == ScalarType::int32) {
    const std::span<const int64_t> from = elements<int64_t>(tensor);
    for (size_t i = 0; i < from.size(); ++i) {
      PTERO_REJECT_IF(!std::in_range<int32_t>(from[i]), invalid_argument,
                      "Element {} ({}) does not fit in 32 bits, which is what the graph computes "
                      "with.",
                      i, from[i]);
    }
    return cast_all<int32_t, int64_t>(tensor, type);
  }
  if (tensor.type == ScalarType::int32 && type == ScalarType::int64) {
    return cast_all<int64_t, int32_t>(tensor, type);
  }
  if (tensor.type == ScalarType::float64 && type == ScalarType::float32) {
    return cast_all<float, double>(tensor, type);
  }
  if (tensor.type == ScalarType::float32 && type == ScalarType::float64) {
    return cast_all<double, float>(tensor, type);
  }
  if (tensor.type == ScalarType::float16 && type == ScalarType::float32) {
    return map_all<float, uint16_t>(tensor, type, half_to_float);
  }
  if (tensor.type == ScalarType::float32 && type == ScalarType::float16) {
    return map_all<uint16_t, float>(tensor, type, float_to_half);
  }
  return make_error(ErrorCode::unsupported, "Element type ({}) is not converted to {}.",
                    pte::name_of(tensor.type), pte::name_of(type));
}

ScalarType host_type(pte::GraphDtype dtype) {
  switch (dtype) {
    case pte::GraphDtype::boolean:
      return ScalarType::boolean;
    case pte::GraphDtype::uint8:
      return ScalarType::uint8;
    case pte::GraphDtype::int8:
      return ScalarType::int8;
    case pte::GraphDtype::int32:
      return ScalarType::int32;
    case pte::GraphDtype::float16:
      return ScalarType::float16;
    case pte::GraphDtype::float64:
      return ScalarType::float64;
    case pte::GraphDtype::int64:
      return ScalarType::int64;
    case pte::GraphDtype::float32:
    case pte::GraphDtype::unset:
      break;
  }
  return ScalarType::float32;
}

const pte::Value* HostCall::value(size_t arg) const {
  return arg < args_.size() ? &plan_.values[args_[arg]] : nullptr;
}

bool HostCall::is_null(size_t arg) const {
  const pte::Value* found = value(arg);
  return found != nullptr && std::holds_alternative<pte::Null>(*found);
}

Result<const HostTensor*> HostCall::tensor(size_t arg) const {
  const pte::Value* found = value(arg);
  PTERO_REJECT_IF(found == nullptr || !std::holds_alternative<pte::Tensor>(*found), invalid_program,
                  "Argument {} is not a Tensor.", arg);
  return &tensors_[args_[arg]];
}

Result<HostTensor*> HostCall::output(size_t arg) {
  const pte::Value* found = value(arg);
  PTERO_REJECT_IF(found == nullptr || !std::holds_alternative<pte::Tensor>(*found), invalid_program,
                  "Argument {} is not a Tensor.", arg);
  HostTensor& output = tensors_[args_[arg]];
  output.type = std::get<pte::Tensor>(*found).scalar_type;
  return &output;
}

Result<double> HostCall::number(size_t arg) const {
  if (const pte::Value* found = value(arg)) {
    if (const auto* number = std::get_if<double>(found)) {
      return *number;
    }
    if (std::holds_alternative<int64_t>(*found)) {
      PTERO_ASSIGN_OR_RETURN(const int64_t integer, integer_of(tensors_[args_[arg]]));
      return static_cast<double>(integer);
    }
  }
  return make_error(ErrorCode::invalid_program, "Argument {} is not a number.", arg);
}

Result<int64_t> HostCall::integer(size_t arg) const {
  const pte::Value* found = value(arg);
  PTERO_REJECT_IF(found == nullptr || !std::holds_alternative<int64_t>(*found), invalid_program,
                  "Argument {} is not an integer.", arg);
  return integer_of(tensors_[args_[arg]]);
}

Status HostCall::set_integer(size_t arg, int64_t integer) {
  const pte::Value* found = value(arg);
  PTERO_REJECT_IF(found == nullptr || !std::holds_alternative<int64_t>(*found), invalid_program,
                  "Argument {} is not an integer.", arg);
  tensors_[args_[arg]] = make_integer(integer);
  return ok_status();
}

HostTensor make_integer(int64_t value) {
  HostTensor tensor = make_host_tensor(pte::ScalarType::int64, {});
  elements<int64_t>(tensor)[0] = value;
  return tensor;
}

Result<int64_t> integer_of(const HostTensor& tensor) {
  PTERO_REJECT_IF(tensor.shape.numel() != 1, invalid_argument,
                  "A tensor {} stands for an integer, and does not have one element.",
                  to_string(tensor.shape));
  switch (tensor.type) {
    case pte::ScalarType::int64:
      return elements<int64_t>(tensor)[0];
    case pte::ScalarType::int32:
      return elements<int32_t>(tensor)[0];
    default:
      return make_error(ErrorCode::unsupported, "Element type ({}) does not stand for an integer.",
                        pte::name_of(tensor.type));
  }
}

}  // namespace ptero::graph
