// SPDX-License-Identifier: BSD-3-Clause
// Host operators by themselves, against numbers by hand. docs/operators.md lists these cases.
#include "ops/host_operators.h"

#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace ptero::ops {
namespace {

using graph::elements;
using graph::HostTensor;
using graph::Shape;
using pte::ScalarType;

// A call made value by value.
class Call {
 public:
  uint32_t add(pte::Value value, HostTensor tensor = {}) {
    plan_.values.push_back(std::move(value));
    tensors_.push_back(std::move(tensor));
    args_.push_back(static_cast<uint32_t>(plan_.values.size() - 1));
    return args_.back();
  }
  uint32_t integer(int64_t value) { return add(value, graph::make_integer(value)); }
  template <typename T>
  uint32_t tensor(ScalarType type, const Shape& shape, const std::vector<T>& values) {
    HostTensor tensor = graph::make_host_tensor(type, shape);
    REQUIRE(elements<T>(tensor).size() == values.size());
    std::copy(values.begin(), values.end(), elements<T>(tensor).begin());
    pte::Tensor stated;
    stated.scalar_type = type;
    return add(stated, std::move(tensor));
  }
  // The sentence of its error, or nothing.
  std::string run(const std::string& name) {
    graph::HostCall call(plan_, args_, tensors_);
    const Status status = host_operators().at(name)(call);
    return status.ok() ? "" : status.error().message();
  }
  template <typename T>
  std::vector<T> values(uint32_t id) const {
    const auto found = elements<T>(tensors_[id]);
    return {found.begin(), found.end()};
  }
  const Shape& shape(uint32_t id) const { return tensors_[id].shape; }

 private:
  pte::ExecutionPlan plan_;
  std::vector<uint32_t> args_;
  std::vector<HostTensor> tensors_;
};

TEST_CASE("operator aten::add.out") {
  Call call;
  call.tensor<float>(ScalarType::float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  call.tensor<float>(ScalarType::float32, {3}, {10, 20, 30});
  call.integer(2);
  const uint32_t y = call.tensor<float>(ScalarType::float32, {0}, {});
  CHECK(call.run("aten::add.out").empty());
  CHECK(call.values<float>(y) == std::vector<float>{21, 42, 63, 24, 45, 66});
}

TEST_CASE("operator aten::sym_size.int") {
  Call call;
  call.tensor<float>(ScalarType::float32, {2, 5}, std::vector<float>(10));
  call.integer(-1);
  const uint32_t y = call.integer(0);
  CHECK(call.run("aten::sym_size.int").empty());
  CHECK(call.values<int64_t>(y) == std::vector<int64_t>{5});
}

TEST_CASE(
    "operator executorch_prim::add.Scalar, executorch_prim::sub.Scalar, "
    "executorch_prim::mul.Scalar, executorch_prim::floordiv.Scalar") {
  const auto compute = [](const char* name, int64_t a, int64_t b) {
    Call call;
    call.integer(a);
    call.integer(b);
    const uint32_t y = call.integer(0);
    const std::string failure = call.run(name);
    return failure.empty() ? std::to_string(call.values<int64_t>(y)[0]) : failure;
  };
  CHECK(compute("executorch_prim::add.Scalar", 7, -3) == "4");
  CHECK(compute("executorch_prim::sub.Scalar", 7, -3) == "10");
  CHECK(compute("executorch_prim::mul.Scalar", 7, -3) == "-21");
  CHECK(compute("executorch_prim::floordiv.Scalar", -7, 2) == "-4");
  CHECK(compute("executorch_prim::floordiv.Scalar", 7, 0) == "Value (7) is divided by 0.");
}

// Two rows of four values, two scales a row.
void check_embedding(const char* name, bool has_dtype) {
  Call call;
  call.tensor<int8_t>(ScalarType::int8, {2, 4}, {1, -2, 3, 4, 10, 20, -30, 127});
  call.tensor<float>(ScalarType::float32, {2, 2}, {0.5f, 2, 0.25f, 1});
  call.add(pte::Null{});
  call.integer(-128);
  call.integer(127);
  call.tensor<int64_t>(ScalarType::int64, {1, 3}, {1, 0, 1});
  if (has_dtype) {
    call.integer(6);
  }
  const uint32_t y = call.tensor<float>(ScalarType::float32, {0}, {});
  CHECK(call.run(name).empty());
  CHECK(call.shape(y) == Shape{1, 3, 4});
  CHECK(call.values<float>(y) ==
        std::vector<float>{2.5f, 5, -30, 127, 0.5f, -1, 6, 8, 2.5f, 5, -30, 127});

  Call wrong;
  wrong.tensor<int8_t>(ScalarType::int8, {2, 4}, std::vector<int8_t>(8));
  wrong.tensor<float>(ScalarType::float32, {2, 1}, {1, 1});
  wrong.add(pte::Null{});
  wrong.integer(-128);
  wrong.integer(127);
  wrong.tensor<int64_t>(ScalarType::int64, {1}, {2});
  wrong.tensor<float>(ScalarType::float32, {0}, {});
  CHECK(wrong.run("quantized_decomposed::embedding_byte.out") ==
        "Index (2) of an embedding is not below the number of rows (2).");
}

TEST_CASE("operator quantized_decomposed::embedding_byte.out") {
  check_embedding("quantized_decomposed::embedding_byte.out", false);
}

TEST_CASE("operator quantized_decomposed::embedding_byte.dtype_out") {
  check_embedding("quantized_decomposed::embedding_byte.dtype_out", true);
}

TEST_CASE("an 8-bit embedding without rows or scales is refused") {
  Call call;
  call.tensor<int8_t>(ScalarType::int8, {0, 4}, {});
  call.tensor<float>(ScalarType::float32, {0, 1}, {});
  call.add(pte::Null{});
  call.integer(-128);
  call.integer(127);
  call.tensor<int64_t>(ScalarType::int64, {1}, {0});
  call.tensor<float>(ScalarType::float32, {0}, {});
  CHECK(call.run("quantized_decomposed::embedding_byte.out").find("do not fit") !=
        std::string::npos);
}

}  // namespace
}  // namespace ptero::ops
