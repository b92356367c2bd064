// SPDX-License-Identifier: BSD-3-Clause
// Methods on a device: integers across the borders of delegates, several methods and sessions side
// by side. The programs are made in memory.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "graph/method.h"
#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"
#include "ops/host_operators.h"
#include "pte/delegate_writer.h"

namespace ptero::ops {
namespace {

using namespace gpu::testing;
using graph::HostTensor;
using graph::MethodModel;
using graph::MethodSession;
using graph::Shape;
using graph::testing::GraphBuilder;
using pte::GraphDtype;

gpu::Device& shared_device() {
  static gpu::Device device = open_device();
  return device;
}

uint32_t add_delegate(pte::Program& program, pte::ExecutionPlan& plan, const GraphBuilder& g) {
  program.segments.push_back(ByteRange::whole(must(pte::assemble_delegate(g.graph()))));
  pte::BackendDelegate delegate;
  delegate.id = std::string(pte::kVulkanBackendId);
  delegate.index = static_cast<uint32_t>(program.segments.size() - 1);
  plan.delegates.push_back(std::move(delegate));
  return static_cast<uint32_t>(plan.delegates.size() - 1);
}

uint32_t add_value(pte::ExecutionPlan& plan, pte::Value value) {
  plan.values.push_back(std::move(value));
  return static_cast<uint32_t>(plan.values.size() - 1);
}

pte::Tensor vector_of(pte::ScalarType type, int32_t size) {
  pte::Tensor tensor;
  tensor.scalar_type = type;
  tensor.sizes = {size};
  tensor.dim_order = {0};
  tensor.dynamism = pte::ShapeDynamism::bounded;
  return tensor;
}

HostTensor longs(const std::vector<int64_t>& values) {
  HostTensor tensor =
      graph::make_host_tensor(pte::ScalarType::int64, Shape{static_cast<uint32_t>(values.size())});
  std::copy(values.begin(), values.end(), graph::elements<int64_t>(tensor).begin());
  return tensor;
}

std::shared_ptr<const MethodModel> load(const pte::Program& program, std::string_view method) {
  static const pte::DataMap no_data;
  return must(MethodModel::load(shared_device(), program, no_data, method, all_operators(),
                                host_operators()));
}

// n, x -> [n + 1] -> times 2 on the host -> [the first 2 (n + 1) of x, doubled]
pte::Program lengths() {
  GraphBuilder first;
  const uint32_t n = first.add(pte::SymInt{});
  const uint32_t next = first.add(pte::SymInt{});
  first.inputs({n});
  first.call("add", {n, first.add(int64_t{1}), next});
  first.outputs({next});

  GraphBuilder second;
  const uint32_t x = second.tensor({12}, GraphDtype::int32);
  const uint32_t length = second.add(pte::SymInt{});
  second.inputs({x, length});
  const uint32_t zero = second.add(int64_t{0});
  const uint32_t one = second.add(int64_t{1});
  const uint32_t part = second.tensor({12}, GraphDtype::int32);
  const uint32_t y = second.tensor({12}, GraphDtype::int32);
  second.call("aten.slice_copy.Tensor", {x, zero, zero, length, one, part});
  second.call("aten.add.Tensor", {part, part, one, y});
  second.outputs({y});

  pte::Program program;
  pte::ExecutionPlan plan;
  plan.name = "forward";
  const uint32_t n_value = add_value(plan, int64_t{0});
  const uint32_t x_value = add_value(plan, vector_of(pte::ScalarType::int64, 12));
  const uint32_t next_value = add_value(plan, int64_t{0});
  const uint32_t two = add_value(plan, int64_t{2});
  const uint32_t length_value = add_value(plan, int64_t{0});
  const uint32_t y_value = add_value(plan, vector_of(pte::ScalarType::int64, 12));
  plan.inputs = {n_value, x_value};
  plan.outputs = {y_value, length_value};
  plan.operators = {{"executorch_prim::mul", "Scalar"}};
  const uint32_t a = add_delegate(program, plan, first);
  const uint32_t b = add_delegate(program, plan, second);
  pte::Chain chain;
  chain.instructions = {pte::DelegateCall{a, {n_value, next_value}},
                        pte::KernelCall{0, {next_value, two, length_value}},
                        pte::DelegateCall{b, {x_value, length_value, y_value}}};
  plan.chains = {chain};
  program.plans = {plan};
  return program;
}

const std::vector<int64_t> kTwelve = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

void check_lengths(MethodSession& session, int64_t n) {
  const auto outputs = must(session.run({graph::make_integer(n), longs(kTwelve)}));
  REQUIRE(outputs.size() == 2);
  const int64_t length = 2 * (n + 1);
  CHECK(must(graph::integer_of(outputs[1])) == length);
  CHECK(outputs[1].shape.rank() == 0);
  std::vector<int64_t> want(kTwelve.begin(), kTwelve.begin() + length);
  for (int64_t& value : want) {
    value *= 2;
  }
  CHECK(outputs[0] == longs(want));
}

TEST_CASE("integers pass between the caller, delegates and host operators") {
  const pte::Program program = lengths();
  const auto session = must(MethodSession::create(load(program, "forward")));
  for (const int64_t n : {0, 3, 5, 1, 3, 0}) {
    check_lengths(*session, n);
  }
  const auto failure = [&](std::vector<HostTensor> inputs) {
    const auto outputs = gpu::wait_for(session->run(std::move(inputs)));
    return outputs.ok() ? "(no error)" : outputs.error().message();
  };
  CHECK(failure({graph::make_integer(6), longs(kTwelve)}) ==
        "(no error)");  // clamped, as in Python
  CHECK(failure({longs({1, 2}), longs(kTwelve)}) ==
        "Input 0 of method (forward) is an integer, and [2] is not one element.");
  CHECK(failure({graph::make_host_tensor(pte::ScalarType::float32, {}), longs(kTwelve)}) ==
        "Element type (float32) of input 0 differs from what method (forward) takes (int64).");
  CHECK(failure({graph::make_integer(INT64_MAX), longs(kTwelve)}) ==
        "9223372036854775807 + 1 does not fit 64 bits.");
  CHECK(failure({graph::make_integer(1), longs({1, int64_t{1} << 31})}).find("2147483648") !=
        std::string::npos);
  check_lengths(*session, 2);  // errors leave the session usable
}

TEST_CASE("sessions of one model and two models side by side do not meet") {
  const pte::Program program = lengths();
  const auto model = load(program, "forward");
  const auto other = load(program, "forward");
  const auto a = must(MethodSession::create(model));
  const auto b = must(MethodSession::create(model));
  const auto c = must(MethodSession::create(other));
  for (int i = 0; i < 4; ++i) {
    check_lengths(*a, i);
    check_lengths(*b, 4 - i);
    check_lengths(*c, 2);
  }
  // Started before the one before was waited for.
  auto first = started(a->run({graph::make_integer(1), longs(kTwelve)}));
  auto second = started(b->run({graph::make_integer(2), longs(kTwelve)}));
  const auto late = must(std::move(second));
  const auto early = must(std::move(first));
  CHECK(early[0] == longs({2, 4, 6, 8}));
  CHECK(late[0] == longs({2, 4, 6, 8, 10, 12}));
}

TEST_CASE("a hundred runs give the same bits, whatever ran between") {
  GraphBuilder g;
  const uint32_t x = g.input({7, 13});
  const uint32_t y = g.tensor({7, 13});
  const uint32_t z = g.tensor({7, 13});
  g.call("aten._softmax.default", {x, g.add(int64_t{-1}), g.add(false), y});
  g.call("aten.exp.default", {y, z});
  g.outputs({z});
  const auto model = must(graph::GraphModel::load(shared_device(), g.graph(), all_operators()));
  const auto session = must(graph::GraphSession::create(model, {.poison_activations = true}));
  std::vector<float> values(7 * 13);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 37 % 91) / 16.0f - 2.0f;
  }
  const auto input = [&](uint32_t rows) {
    return std::vector<graph::RunInput>{
        {{Shape{rows, 13}, 0}, std::as_bytes(std::span(values)).first(rows * 13 * 4)}};
  };
  const auto first = must(session->run(input(7))).at(0).bytes;
  const uint64_t calls = session->planner().operator_calls();
  for (int i = 0; i < 100; ++i) {
    REQUIRE(must(session->run(input(7))).at(0).bytes == first);
    if (i % 10 == 0) {
      must(session->run(input(1 + static_cast<uint32_t>(i) % 6)));
    }
  }
  CHECK(session->planner().operator_calls() ==
        calls + 2 * 3);  // two operators at lengths 1, 5 and 3
}

}  // namespace
}  // namespace ptero::ops
