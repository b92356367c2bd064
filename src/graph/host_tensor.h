// SPDX-License-Identifier: BSD-3-Clause
// Tensors in host memory: what goes into a method, what comes out, and what host operators see.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "graph/shape.h"
#include "pte/program.h"
#include "pte/values.h"

namespace ptero::graph {

// Dense, row-major.
struct HostTensor {
  pte::ScalarType type = pte::ScalarType::float32;
  Shape shape;
  std::vector<std::byte> bytes;

  bool operator==(const HostTensor&) const = default;
};

// Makes room for `shape`, zero-filled. Precondition: the type has an element size.
HostTensor make_host_tensor(pte::ScalarType type, const Shape& shape);

// The elements as T, whose size is the type's. The bytes of a vector are aligned for every T.
template <typename T>
std::span<const T> elements(const HostTensor& tensor) {
  return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}
template <typename T>
std::span<T> elements(HostTensor& tensor) {
  return {reinterpret_cast<T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
}

// The same elements in another type: the conversions at a delegate's border. 64-bit integers
// become 32-bit ones when every value fits (invalid_argument names the first that does not),
// doubles become floats, floats become halves, and the reverse; anything else is unsupported.
Result<HostTensor> convert(const HostTensor& tensor, pte::ScalarType type);

// The type that a graph tensor's elements have on the host.
pte::ScalarType host_type(pte::GraphDtype dtype);

// An integer of a method (an Int EValue) among tensors: an int64 tensor of rank 0.
HostTensor make_integer(int64_t value);
// The one element of such a tensor, or of any integer tensor with one element. Code
// invalid_argument for another number of elements, unsupported for other types.
Result<int64_t> integer_of(const HostTensor& tensor);

// One call of a host operator: arguments by position, as in the file (outputs last, and once more
// as the return value).
class HostCall {
 public:
  HostCall(const pte::ExecutionPlan& plan, const std::vector<uint32_t>& args,
           std::vector<HostTensor>& tensors)
      : plan_(plan), args_(args), tensors_(tensors) {}

  size_t arg_count() const { return args_.size(); }
  bool is_null(size_t arg) const;
  Result<const HostTensor*> tensor(size_t arg) const;
  // The tensor to write; the operator sets type, shape and bytes. Its type is the file's.
  Result<HostTensor*> output(size_t arg);
  Result<double> number(size_t arg) const;
  Result<int64_t> integer(size_t arg) const;  // live
  Status set_integer(size_t arg, int64_t value);

 private:
  const pte::Value* value(size_t arg) const;

  const pte::ExecutionPlan& plan_;
  const std::vector<uint32_t>& args_;
  std::vector<HostTensor>& tensors_;  // by value id
};

// Operators that run on the host, between delegates. "aten::add.Scalar_out"
using HostOperator = std::function<Status(HostCall&)>;
using HostOperatorRegistry = std::unordered_map<std::string, HostOperator>;

}  // namespace ptero::graph
