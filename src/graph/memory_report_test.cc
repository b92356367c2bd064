// SPDX-License-Identifier: BSD-3-Clause
#include "graph/memory_report.h"

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"

namespace ptero::graph {
namespace {

using gpu::MemoryKind;
using testing::GraphBuilder;

constexpr gpu::BindingDecl kBindings[] = {{"x", false}, {"weight", false}, {"s", true}};
constexpr gpu::KernelSource kKernel{
    .name = "sample", .text = "", .bindings = kBindings, .params_size = 4};

// [x, weight, cache, y]: scratch of 8 bytes an element of x.
const OperatorRegistry& operators() {
  static const OperatorRegistry registry = [] {
    OperatorRegistry ops;
    ops.add("op",
            [](OpCall& op) -> Status {
              PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
              PTERO_ASSIGN_OR_RETURN(const TensorRef weight, op.tensor(1));
              PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
              PTERO_REJECT_IF(x.numel() == 1 && op.device().limits.max_immediate_size == 1,
                              unsupported, "No.");
              PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
              PTERO_ASSIGN_OR_RETURN(const BufferRef s, op.scratch(x.numel() * 8));
              return op.dispatch({{&kKernel}, {x, weight, s}, {1, 1, 1}}, uint32_t{1});
            },
            {.mutates = {2}});
    return ops;
  }();
  return registry;
}

uint64_t of(const BytesByKind& bytes, MemoryKind kind) {
  return bytes[static_cast<size_t>(kind)];
}

GraphBuilder two_calls() {
  GraphBuilder g;
  const uint32_t x = g.input({100});
  const uint32_t weight = g.constant("w", {25});
  const uint32_t a = g.tensor({100});
  const uint32_t y = g.tensor({100});
  g.call("op", {x, weight, g.constant("k", {50}), a});
  g.call("op", {a, weight, g.constant("v", {50}), y});
  g.outputs({y});
  return g;
}

TEST_CASE("memory: each kind by what it is for") {
  DeviceFacts device = testing::default_device();
  device.features = {};
  const auto planned = planned_bytes(two_calls().graph(), operators(), {}, device);
  REQUIRE(planned.ok());
  CHECK(of(*planned, MemoryKind::weights) == 100);
  CHECK(of(*planned, MemoryKind::cache) == 2 * 200);
  CHECK(of(*planned, MemoryKind::activations) == 3 * 400);
  CHECK(of(*planned, MemoryKind::scratch) == 800);
  CHECK(of(*planned, MemoryKind::staging) == 400);
  CHECK(of(*planned, MemoryKind::uniforms) == 64 * gpu::kUniformSlotBytes);
  CHECK(sum(*planned) == 100 + 400 + 1200 + 800 + 400 + 64 * gpu::kUniformSlotBytes);

  device.features.insert(gpu::Feature::immediates);
  device.options.scratch_pool = false;
  const auto other = planned_bytes(two_calls().graph(), operators(), {}, device);
  REQUIRE(other.ok());
  CHECK(of(*other, MemoryKind::scratch) == 1600);
  CHECK(of(*other, MemoryKind::uniforms) == 0);
  device.limits.max_immediate_size = 1;  // one token is no shape of this graph
  CHECK(planned_bytes(two_calls().graph(), operators(), {}, device).value() == *other);
}

// Passes leave such values behind.
TEST_CASE("memory: what nothing names takes none, inputs and outputs do") {
  GraphBuilder g = two_calls();
  const auto before = planned_bytes(g.graph(), operators(), {}, testing::default_device());
  g.constant("left over", {1000});
  g.tensor({2000});
  CHECK(planned_bytes(g.graph(), operators(), {}, testing::default_device()).value() == *before);
  g.input({6});
  const auto after = planned_bytes(g.graph(), operators(), {}, testing::default_device());
  CHECK(sum(*after) == sum(*before) + 24);
  std::vector<uint32_t> outputs = g.graph().outputs;
  outputs.push_back(g.tensor({7}));
  g.outputs(outputs);
  const MemoryPlan memory = plan_memory(g.graph(), operators()).value();
  CHECK(memory.storage_of[outputs.back()].has_value());
  for (const pte::OperatorCall& call : g.graph().chain) {
    for (const uint32_t arg : call.args) {
      CHECK(memory.storage_of[arg].has_value());
    }
  }
}

TEST_CASE("memory: graphs that run one after the other share parameters and staging") {
  const BytesByKind a = {1, 2, 3, 4, 50, 6, 7};
  const BytesByKind b = {10, 20, 30, 40, 5, 60, 70};
  CHECK(together(a, b) == BytesByKind{11, 22, 33, 44, 50, 60, 77});
}

TEST_CASE("memory: the ring of parameters doubles") {
  CHECK(gpu::uniform_ring_bytes(1) == 64 * 512);
  CHECK(gpu::uniform_ring_bytes(64 * 512) == 64 * 512);
  CHECK(gpu::uniform_ring_bytes(64 * 512 + 1) == 128 * 512);
}

}  // namespace
}  // namespace ptero::graph
