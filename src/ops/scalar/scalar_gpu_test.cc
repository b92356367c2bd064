// SPDX-License-Identifier: BSD-3-Clause
// SymInts on a device: taken from tensors that the host does not have, computed there, read by
// kernels, made into shapes, and returned.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "graph/model.h"
#include "graph/session.h"
#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using graph::GraphSession;
using graph::RunInput;
using graph::RunOutput;
using graph::Shape;
using graph::testing::GraphBuilder;
using pte::GraphDtype;

gpu::Device& shared_device() {
  static gpu::Device device = open_device();
  return device;
}

std::unique_ptr<GraphSession> open_session(const GraphBuilder& g) {
  const auto model = must(graph::GraphModel::load(shared_device(), g.graph(), all_operators()));
  return must(GraphSession::create(model, {.poison_activations = true}));
}

RunInput host(const std::vector<int32_t>& values) {
  return {{Shape{static_cast<uint32_t>(values.size())}, 0}, std::as_bytes(std::span(values))};
}

// A buffer on the device that holds these.
gpu::Buffer buffer_of(const std::vector<int32_t>& values) {
  gpu::Device& device = shared_device();
  gpu::Buffer buffer =
      must(device.create_buffer("values", values.size() * 4, gpu::MemoryKind::other));
  must(device.write(buffer, 0, std::as_bytes(std::span(values))));
  return buffer;
}
RunInput on_device(const gpu::Buffer& buffer) {
  return {{Shape{static_cast<uint32_t>(buffer.size() / 4)}, 0}, {}, &buffer};
}

// out = (op)(x[0], x[1]), with what only the device knows when x is in a buffer.
GraphBuilder arithmetic(const std::string& name) {
  GraphBuilder g;
  const uint32_t x = g.input({2}, GraphDtype::int32);
  const uint32_t zero = g.add(int64_t{0});
  const uint32_t a = g.add(pte::SymInt{});
  const uint32_t b = g.add(pte::SymInt{});
  const uint32_t out = g.add(pte::SymInt{});
  g.call("et_vk.select_as_symint.default", {x, zero, zero, a});
  g.call("et_vk.select_as_symint.default", {x, zero, g.add(int64_t{-1}), b});
  g.call(name, {a, b, out});
  g.outputs({out});
  return g;
}

TEST_CASE("arithmetic on the device is that of the host, 32 bits wide") {
  const std::vector<std::vector<int32_t>> pairs = {{7, 2},
                                                   {-7, 2},
                                                   {7, -2},
                                                   {-7, -2},
                                                   {0, 5},
                                                   {5, 0},
                                                   {46341, 46341},
                                                   {-46341, 46341},
                                                   {46340, 46340},
                                                   {INT32_MAX, 1},
                                                   {-INT32_MAX, 2},
                                                   {INT32_MAX, INT32_MAX},
                                                   {-INT32_MAX, INT32_MAX},
                                                   {65536, 32768},
                                                   {65536, -32767},
                                                   {123456, -17395},
                                                   {1, -INT32_MAX},
                                                   {INT32_MAX, -1}};
  for (const char* name : {"add", "sub", "mul", "floordiv"}) {
    CAPTURE(name);
    const auto session = open_session(arithmetic(name));
    for (const std::vector<int32_t>& pair : pairs) {
      CAPTURE(pair[0]);
      CAPTURE(pair[1]);
      auto expected = session->run(std::vector{host(pair)});
      const gpu::Buffer buffer = buffer_of(pair);
      auto got = gpu::wait_for(session->run(std::vector{on_device(buffer)}));
      std::optional<int64_t> want;
      if (expected.ok()) {
        want = must(std::move(*expected)).at(0).scalar;
      }
      if (want && *want > INT32_MIN && *want <= INT32_MAX) {
        REQUIRE(got.ok());
        CHECK(got->at(0).scalar == want);
        CHECK(session->last_splits() == 0);
      } else {
        REQUIRE_FALSE(got.ok());
        CHECK(got.error().code() == ErrorCode::invalid_argument);
      }
    }
  }
}

TEST_CASE("SymInts go in and come out as they are: negative, beyond int32, changed and back") {
  GraphBuilder g;
  const uint32_t a = g.add(pte::SymInt{});
  const uint32_t out = g.add(pte::SymInt{});
  g.inputs({a});
  g.call("add", {a, g.add(int64_t{1}), out});
  g.outputs({out, a});
  const auto session = open_session(g);
  for (const int64_t value : {int64_t{5}, int64_t{-3}, int64_t{1} << 40, -(int64_t{1} << 33),
                              int64_t{5}, int64_t{0}, int64_t{-3}}) {
    const auto outputs = must(session->run(std::vector<RunInput>{{{{}, value}, {}}}));
    CHECK(outputs.at(0).scalar == value + 1);
    CHECK(outputs.at(1).scalar == value);
  }
  CHECK(session->planner().operator_calls() == 1);
}

// y = table[start .. start + 2), with start = index[0] + 1 from a tensor made by a kernel.
TEST_CASE("a start from an intermediate tensor: no split, and out of range is an error") {
  GraphBuilder g;
  const uint32_t table = g.input({8, 3}, GraphDtype::int32);
  const uint32_t index = g.input({1}, GraphDtype::int32);
  const uint32_t next = g.tensor({1}, GraphDtype::int32);
  const uint32_t zero = g.add(int64_t{0});
  const uint32_t one = g.add(int64_t{1});
  const uint32_t start = g.add(pte::SymInt{});
  const uint32_t end = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({2, 3}, GraphDtype::int32);
  g.call("aten.add.Tensor", {index, index, one, next});
  g.call("et_vk.select_as_symint.default", {next, zero, zero, start});
  g.call("add", {start, g.add(int64_t{2}), end});
  g.call("aten.slice_copy.Tensor", {table, zero, start, end, one, y});
  g.outputs({y});
  const auto session = open_session(g);
  std::vector<int32_t> values(24);
  for (int32_t i = 0; i < 24; ++i) {
    values[static_cast<size_t>(i)] = i;
  }
  RunInput tables = host(values);
  tables.live.shape = {8, 3};
  const uint64_t calls = session->planner().operator_calls();
  for (const int32_t at : {0, 3, 1, 3, 0}) {
    const std::vector<int32_t> index_values = {at};
    const auto outputs = must(session->run(std::vector{tables, host(index_values)}));
    const int32_t first = 2 * at * 3;
    CHECK(values_of<int32_t>(outputs.at(0).bytes) ==
          std::vector<int32_t>{first, first + 1, first + 2, first + 3, first + 4, first + 5});
    CHECK(session->last_splits() == 0);
  }
  CHECK(session->planner().operator_calls() ==
        calls);  // the plan of the largest shapes, made then, serves all
  for (const int32_t at : {4, -1}) {
    const std::vector<int32_t> index_values = {at};
    const auto outputs = gpu::wait_for(session->run(std::vector{tables, host(index_values)}));
    REQUIRE_FALSE(outputs.ok());
    CHECK(outputs.error().to_string() ==
          fmt::format("Argument 2 ({}) of operator 3 (aten.slice_copy.Tensor) does not lie between "
                      "0 and 6.",
                      2 * at));
  }
}

TEST_CASE("a length from an intermediate tensor splits the run once, for any length") {
  GraphBuilder g;
  const uint32_t x = g.input({9}, GraphDtype::int32);
  const uint32_t sum = g.tensor({9}, GraphDtype::int32);
  const uint32_t zero = g.add(int64_t{0});
  const uint32_t one = g.add(int64_t{1});
  const uint32_t length = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({9}, GraphDtype::int32);
  const uint32_t z = g.tensor({9}, GraphDtype::int32);
  const uint32_t only = g.tensor({1}, GraphDtype::int32);
  g.call("aten.add.Tensor", {x, x, one, sum});
  g.call("aten.slice_copy.Tensor", {sum, zero, zero, one, one, only});
  g.call("et_vk.select_as_symint.default", {only, zero, zero, length});
  g.call("aten.slice_copy.Tensor", {sum, zero, zero, length, one, y});
  g.call("aten.add.Tensor", {y, y, one, z});
  g.outputs({z, length});
  const auto session = open_session(g);
  for (const int32_t half : {1, 4, 2, 4, 1}) {
    std::vector<int32_t> values = {half, 11, 12, 13, 14, 15, 16, 17, 18};
    const auto outputs = must(session->run(std::vector{host(values)}));
    CHECK(session->last_splits() == 1);
    CHECK(session->last_dispatches() == 5);
    CHECK(outputs.at(1).scalar == 2 * half);
    CHECK(outputs.at(0).shape == Shape{static_cast<uint32_t>(2 * half)});
    values.resize(static_cast<size_t>(2 * half));
    for (int32_t& value : values) {
      value *= 4;
    }
    CHECK(values_of<int32_t>(outputs.at(0).bytes) == values);
  }
}

TEST_CASE("buffers in and out: nothing is read back, and a small one is refused") {
  GraphBuilder g;
  const uint32_t x = g.input({5}, GraphDtype::int32);
  const uint32_t y = g.tensor({5}, GraphDtype::int32);
  g.call("aten.add.Tensor", {x, x, g.add(int64_t{1}), y});
  g.outputs({y});
  const auto session = open_session(g);
  gpu::Device& device = shared_device();
  gpu::Buffer a = buffer_of({1, 2, 3, 4, 5});
  gpu::Buffer b = buffer_of({0, 0, 0, 0, 0});
  const uint64_t before = device.stats().bytes_read_back;
  const auto kept = must(session->run(std::vector{on_device(a)}, {&b}));
  CHECK(kept.at(0).bytes.empty());
  CHECK(kept.at(0).shape == Shape{5});
  must(session->run(std::vector{on_device(b)}, {&a}));
  CHECK(device.stats().bytes_read_back == before);
  const auto outputs = must(session->run(std::vector{on_device(a)}));
  CHECK(values_of<int32_t>(outputs.at(0).bytes) == std::vector<int32_t>{8, 16, 24, 32, 40});
  CHECK(device.stats().bytes_read_back == before + 20);

  const gpu::Buffer small = buffer_of({1, 2, 3, 4});
  RunInput wrong = on_device(small);
  wrong.live.shape = {5};
  CHECK(session->run(std::vector{wrong}).error().message() ==
        "Buffer (16 bytes) for input 0 is smaller than its shape [5] takes (20).");
  auto late = gpu::wait_for(session->run(std::vector{on_device(a)}, {&small}));
  CHECK(late.error().message() ==
        "Buffer (16 bytes) for output 0 is smaller than its shape [5] takes (20).");
  CHECK(session->run(std::vector{on_device(a)}, {&b, &b}).error().message() ==
        "Number of output buffers (2) differs from what the graph produces (1).");
}

}  // namespace
}  // namespace ptero::ops
