// SPDX-License-Identifier: BSD-3-Clause
#include "pte/program.h"

#include <doctest/doctest.h>

#include "pte/data_map.h"
#include "pte/graph.h"
#include "schema/bundled_program_generated.h"
#include "schema/flat_tensor_generated.h"
#include "schema/program_generated.h"
#include "schema/vkgraph_generated.h"

namespace ptero::pte {
namespace {

ByteRange bytes(size_t count, const char* name) {
  return ByteRange::whole(own_bytes(std::vector<std::byte>(count), name));
}

TEST_CASE("schema: identifiers and slots agree with the format") {
  CHECK(std::string(fbs::program::ProgramIdentifier()) == "ET12");
  CHECK(std::string(fbs::vkgraph::VkGraphIdentifier()) == "VK00");
  CHECK(std::string(fbs::flat_tensor::FlatTensorIdentifier()) == "FT01");
  CHECK(std::string(fbs::bundled_program::BundledProgramIdentifier()) == "BP08");
  CHECK(int{fbs::program::Program::VT_NAMED_DATA} == 4 + 2 * 7);
  CHECK(int{fbs::vkgraph::VkTensor::VT_STAGING_DATATYPE} == 4 + 2 * 6);
}

TEST_CASE("tensor_bytes: product, empty tensors, overflow, packed types") {
  CHECK(*tensor_bytes(ScalarType::float32, {2, 3, 5}) == 120);
  CHECK(*tensor_bytes(ScalarType::int64, {}) == 8);
  CHECK(*tensor_bytes(ScalarType::int64, {0, 7}) == 0);
  CHECK(tensor_bytes(ScalarType::float32, {INT32_MAX, INT32_MAX, INT32_MAX}).error().message() ==
        "The byte size of a tensor of rank 3 does not fit in 64 bits.");
  CHECK_FALSE(tensor_bytes(ScalarType::float32, {2, -1}).ok());
  CHECK_FALSE(tensor_bytes(ScalarType::quint4x2, {2}).ok());
  CHECK(*tensor_bytes(GraphDtype::float16, {4, 4}) == 32);
  CHECK_FALSE(tensor_bytes(GraphDtype::unset, {4}).ok());
  CHECK_FALSE(tensor_bytes(GraphDtype::uint8, {UINT32_MAX, UINT32_MAX, 2}).ok());
}

TEST_CASE("constant_bytes: constant segment, constant buffer, mutable segment") {
  Program program;
  program.segments = {bytes(100, "a"), bytes(50, "b")};
  program.constant_segment = SubsegmentOffsets{0, {0, 16, 90}};
  program.mutable_data_segments = {SubsegmentOffsets{1, {0, 8}}};
  Tensor tensor{.sizes = {4}, .data_buffer = 1};
  Result<ByteRange> range = constant_bytes(program, tensor);
  REQUIRE(range.ok());
  CHECK(range->offset() == 16);
  CHECK(range->size() == 16);
  tensor.data_buffer = 2;
  CHECK_FALSE(constant_bytes(program, tensor).ok());
  tensor = {.sizes = {4}, .data_buffer = 1, .allocation = Allocation{1, 0}};
  range = constant_bytes(program, tensor);
  REQUIRE(range.ok());
  CHECK(range->source()->name() == "b");
  CHECK(range->offset() == 8);
  program.constant_segment.reset();
  program.constant_buffer = {bytes(0, ""), bytes(20, "c")};
  tensor.allocation.reset();
  range = constant_bytes(program, tensor);
  REQUIRE(range.ok());
  CHECK(range->source()->name() == "c");
  CHECK(range->size() == 16);
}

TEST_CASE("data map: merges files and names a key that two of them hold") {
  Program program;
  program.segments = {bytes(8, "model.pte")};
  program.named_data = {{"w", 0}};
  FlatTensor file;
  file.segments = {bytes(4, "weights.ptd"), bytes(4, "weights.ptd")};
  file.entries = {{"x", 0, std::nullopt}, {"y", 1, TensorLayout{.sizes = {1}, .dim_order = {0}}}};
  DataMap map;
  REQUIRE(map.add(program).ok());
  REQUIRE(map.add(file).ok());
  CHECK(map.size() == 3);
  REQUIRE(map.find("y") != nullptr);
  CHECK(map.find("y")->layout->sizes == std::vector<int32_t>{1});
  CHECK(map.find("z") == nullptr);
  file.entries = {{"z", 0, std::nullopt}, {"w", 1, std::nullopt}};
  const Status clash = map.add(file);
  REQUIRE_FALSE(clash.ok());
  CHECK(clash.error().message() == "The key \"w\" is both in model.pte and in weights.ptd.");
  CHECK(map.find("z") == nullptr);  // all or nothing
}

}  // namespace
}  // namespace ptero::pte
