// SPDX-License-Identifier: BSD-3-Clause
#include "graph/planner.h"

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"

namespace ptero::graph {
namespace {

using testing::GraphBuilder;

constexpr gpu::BindingDecl kBindings[] = {{"x", false}, {"y", true}};
constexpr gpu::KernelSource kKernel{.name = "sample", .text = "", .bindings = kBindings};

const OperatorRegistry& operators() {
  static const OperatorRegistry registry = [] {
    OperatorRegistry ops;
    // [x, y]: y has x's shape.
    ops.add("same", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
      PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
      PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
      return op.dispatch({{&kKernel}, {x, y}, {static_cast<uint32_t>(y.numel()), 1, 1}});
    });
    // [x, times, y]: the first dimension of x times an integer.
    ops.add("longer", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
      PTERO_ASSIGN_OR_RETURN(const int64_t times, op.integer(1));
      PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
      Shape shape = x.shape;
      shape.set(0, shape[0] * static_cast<uint32_t>(times));
      PTERO_RETURN_IF_ERROR(op.set_shape(y, shape));
      return op.dispatch({{&kKernel}, {x, y}, {static_cast<uint32_t>(y.numel()), 1, 1}});
    });
    // [x, out SymInt]: the first dimension of x.
    ops.add("size", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
      return op.set_scalar(x.shape[0]);
    });
    // [x, y]: through scratch of as many bytes as x has elements times 100 and times 10.
    ops.add("scratched", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
      PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
      PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
      PTERO_ASSIGN_OR_RETURN(const BufferRef small, op.scratch(x.numel() * 10));
      PTERO_ASSIGN_OR_RETURN(const BufferRef large, op.scratch(x.numel() * 100));
      PTERO_RETURN_IF_ERROR(op.dispatch({{&kKernel}, {x, small}, {1, 1, 1}}));
      PTERO_RETURN_IF_ERROR(op.dispatch({{&kKernel}, {small, large}, {1, 1, 1}}));
      PTERO_RETURN_IF_ERROR(op.dispatch({{&kKernel}, {large, y}, {1, 1, 1}}));
      PTERO_REJECT_IF(x.numel() == 7, invalid_argument, "There are seven.");
      return ok_status();
    });
    ops.add("view",
            [](OpCall& op) -> Status {
              PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
              PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
              PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
              return op.copy_unless_aliased(x, y);
            },
            {.view = true});
    return ops;
  }();
  return registry;
}

LiveInput shape(std::initializer_list<uint32_t> dims) {
  return {Shape(dims), 0};
}

// A planner and what it looks at.
struct Bench {
  explicit Bench(const GraphBuilder& builder, size_t capacity = 64)
      : graph(builder.graph()),
        memory(plan_memory(graph, operators()).value()),
        planner(graph, memory, operators(), testing::default_device(), capacity) {}

  std::shared_ptr<const Plan> plan(std::vector<LiveInput> inputs) {
    return run(std::move(inputs)).plan;
  }
  PlannedRun run(std::vector<LiveInput> inputs) {
    Result<PlannedRun> run = planner.plan(inputs);
    REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().to_string()));
    return *std::move(run);
  }
  std::string failure(std::vector<LiveInput> inputs) {
    const Result<PlannedRun> plan = planner.plan(inputs);
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code() == ErrorCode::invalid_argument);
    return plan.error().to_string();
  }

  pte::Graph graph;
  MemoryPlan memory;
  Planner planner;
};

// x [<=9, 4] -> same -> same -> y
GraphBuilder chain() {
  GraphBuilder g;
  const uint32_t x = g.input({9, 4});
  const uint32_t a = g.tensor({9, 4});
  const uint32_t y = g.tensor({9, 4});
  g.call("same", {x, a});
  g.call("same", {a, y});
  g.outputs({y});
  return g;
}

TEST_CASE("planner: dispatches name the storages, at the live shape") {
  const GraphBuilder g = chain();
  Bench bench(g);
  const auto plan = bench.plan({shape({3, 4})});
  REQUIRE(plan->commands.size() == 2);
  CHECK(plan->dispatches() == 2);
  const auto& second = std::get<PlannedDispatch>(plan->commands[1]);
  const auto& storage_of = bench.memory.storage_of;
  CHECK(second.bindings ==
        std::vector<PlannedBinding>{{false, *storage_of[1], 0, 0}, {false, *storage_of[2], 0, 0}});
  CHECK(second.grid == gpu::Grid{12, 1, 1});
  CHECK(second.call == 1);
  CHECK(second.kernel.source == &kKernel);
  CHECK(plan->output_shapes == std::vector<Shape>{{3, 4}});
}

TEST_CASE("planner: calls share scratch, what one call takes is its own, the largest comes first") {
  GraphBuilder g;
  uint32_t x = g.input({8});
  for (int i = 0; i < 5; ++i) {
    const uint32_t y = g.tensor({8});
    g.call("scratched", {x, y});
    x = y;
  }
  g.outputs({x});
  for (const bool pool : {true, false}) {
    DeviceFacts device = testing::default_device();
    device.options.scratch_pool = pool;
    const MemoryPlan memory = plan_memory(g.graph(), operators()).value();
    Planner planner(g.graph(), memory, operators(), device);
    const auto inputs = std::vector<LiveInput>{shape({4})};
    const auto run = planner.plan(inputs);
    REQUIRE(run.ok());
    const Plan& plan = *run->plan;
    CHECK(plan.scratch ==
          (pool ? std::vector<uint64_t>{400, 40}
                : std::vector<uint64_t>{400, 400, 400, 400, 400, 40, 40, 40, 40, 40}));
    REQUIRE(plan.commands.size() == 15);
    for (size_t i = 0; i < plan.commands.size(); i += 3) {
      const auto& middle = std::get<PlannedDispatch>(plan.commands[i + 1]);
      CHECK(plan.scratch[middle.bindings[0].id] == 40);
      CHECK(plan.scratch[middle.bindings[1].id] == 400);
      CHECK(std::get<PlannedDispatch>(plan.commands[i]).bindings[1] == middle.bindings[0]);
      CHECK(std::get<PlannedDispatch>(plan.commands[i + 2]).bindings[0] == middle.bindings[1]);
    }
    // A plan that fails leaves nothing behind for the next.
    CHECK_FALSE(planner.plan(std::vector<LiveInput>{shape({7})}).ok());
    CHECK(planner.plan(std::vector<LiveInput>{shape({8})})->plan->scratch[0] == 800);
  }
}

TEST_CASE("planner: shapes do not leak from one plan into the next") {
  const GraphBuilder g = chain();
  Bench bench(g);
  bench.plan({shape({9, 4})});
  CHECK(bench.plan({shape({1, 4})})->output_shapes[0] == Shape{1, 4});
  CHECK(bench.plan({shape({9, 4})})->output_shapes[0] == Shape{9, 4});
}

TEST_CASE("planner: a repeated shape calls no operator function") {
  const GraphBuilder g = chain();
  Bench bench(g);
  CHECK(bench.planner.operator_calls() == 0);
  const auto three = bench.plan({shape({3, 4})});
  const auto five = bench.plan({shape({5, 4})});
  CHECK(bench.planner.operator_calls() == 4);
  CHECK(three != five);
  for (int i = 0; i < 3; ++i) {
    CHECK(bench.plan({shape({3, 4})}) == three);
    CHECK(bench.plan({shape({5, 4})}) == five);
  }
  CHECK(bench.planner.operator_calls() == 4);
  CHECK(bench.planner.remembered() == 2);
}

TEST_CASE("planner: the least recently used plan goes first") {
  const GraphBuilder g = chain();
  Bench bench(g, 2);
  const auto one = bench.plan({shape({1, 4})});
  const auto two = bench.plan({shape({2, 4})});
  CHECK(bench.plan({shape({1, 4})}) == one);  // now 2 is the oldest
  bench.plan({shape({3, 4})});
  CHECK(bench.planner.remembered() == 2);
  CHECK(bench.planner.operator_calls() == 6);
  CHECK(bench.plan({shape({1, 4})}) == one);
  CHECK(bench.planner.operator_calls() == 6);
  CHECK(bench.plan({shape({2, 4})}) != two);  // made again; `two` itself lives on with its owner
  CHECK(bench.planner.operator_calls() == 8);
  CHECK(two->output_shapes[0] == Shape{2, 4});
}

TEST_CASE("planner: a capacity of 0 still keeps the last plan") {
  const GraphBuilder g = chain();
  Bench bench(g, 0);
  const auto plan = bench.plan({shape({1, 4})});
  CHECK(bench.plan({shape({1, 4})}) == plan);
  CHECK(bench.planner.remembered() == 1);
}

TEST_CASE("planner: a failed call is not remembered") {
  GraphBuilder g;
  const uint32_t x = g.input({4});
  const uint32_t y = g.tensor({6});
  g.call("longer", {x, g.add(int64_t{2}), y});
  g.outputs({y});
  Bench bench(g);
  CHECK(bench.failure({shape({4})}) ==
        "Dimension 0 (8) of the result [8] exceeds the bound of the file (6). / while planning "
        "operator 0 (longer)");
  CHECK(bench.planner.remembered() == 0);
  CHECK(bench.plan({shape({3})})->output_shapes[0] == Shape{6});
}

TEST_CASE("planner: SymInt inputs are part of what a plan is for") {
  GraphBuilder g;
  const uint32_t x = g.input({2});
  const uint32_t times = g.add(pte::SymInt{});
  g.inputs({x, times});
  const uint32_t y = g.tensor({100});
  g.call("longer", {x, times, y});
  g.outputs({y, times});
  Bench bench(g);
  const auto two = bench.plan({shape({2}), {{}, 2}});
  const auto run = bench.run({shape({2}), {{}, 3}});
  const auto three = run.plan;
  CHECK(two->output_shapes[0] == Shape{4});
  CHECK(three->output_shapes[0] == Shape{6});
  CHECK(run.scalars[times] == 3);
  CHECK(three->scalars_read == std::vector<std::pair<uint32_t, int64_t>>{{times, 3}});
  CHECK(bench.planner.operator_calls() == 2);
  // What does not count is ignored: a tensor's scalar, a SymInt's shape.
  CHECK(bench.plan({{{2}, 77}, {{5, 5}, 2}}) == two);
  CHECK(bench.planner.operator_calls() == 2);
}

TEST_CASE("planner: a SymInt that an earlier call produces") {
  GraphBuilder g;
  const uint32_t x = g.input({7});
  const uint32_t size = g.add(pte::SymInt{99});
  const uint32_t y = g.tensor({49});
  g.call("size", {x, size});
  g.call("longer", {x, size, y});
  g.outputs({y, size});
  Bench bench(g);
  const auto run = bench.run({shape({5})});
  const auto plan = run.plan;
  CHECK(plan->output_shapes[0] == Shape{25});
  CHECK(run.scalars[size] == 5);
  CHECK(plan->scalars_read.empty());
  CHECK(plan->dispatches() == 1);
}

TEST_CASE("planner: a SymInt that nothing sets") {
  GraphBuilder g;
  const uint32_t x = g.input({7});
  const uint32_t size = g.add(pte::SymInt{3});
  g.call("longer", {x, size, g.tensor({49})});
  Bench bench(g);
  CHECK(bench.planner.plan(std::vector{shape({5})}).error().message() ==
        "SymInt (value 1) is used before anything sets it.");
}

TEST_CASE("planner: inputs that do not fit the graph") {
  GraphBuilder g;
  const uint32_t x = g.input({9, 4});
  const uint32_t empty = g.input({0});
  const uint32_t y = g.tensor({9, 4});
  g.call("same", {x, y});
  g.call("same", {empty, g.tensor({0})});
  g.outputs({y});
  Bench bench(g);
  CHECK(bench.failure({}) == "Number of inputs (0) differs from what the graph takes (2).");
  CHECK(bench.failure({shape({9, 4}), shape({0}), shape({1})}) ==
        "Number of inputs (3) differs from what the graph takes (2).");
  CHECK(bench.failure({shape({36}), shape({0})}) ==
        "Rank (1) of input 0 [36] differs from what the graph takes (2).");
  CHECK(bench.failure({shape({9, 5}), shape({0})}) ==
        "Dimension 1 (5) of input 0 [9, 5] does not lie between 1 and the bound (4).");
  CHECK(bench.failure({shape({0, 4}), shape({0})}) ==
        "Dimension 0 (0) of input 0 [0, 4] does not lie between 1 and the bound (9).");
  CHECK(bench.failure({shape({9, 4}), shape({1})}) ==
        "Dimension 0 (1) of input 1 [1] does not lie between 0 and the bound (0).");
  CHECK(bench.planner.operator_calls() == 0);
  CHECK(bench.plan({shape({9, 4}), shape({0})})->dispatches() == 1);  // nothing for no elements
}

TEST_CASE("planner: the largest inputs are the file's bounds") {
  GraphBuilder g;
  g.inputs({g.tensor({9, 4}), g.add(pte::SymInt{}), g.tensor({})});
  Bench bench(g);
  const auto inputs = bench.planner.largest_inputs();
  REQUIRE(inputs.ok());
  CHECK(*inputs == std::vector<LiveInput>{shape({9, 4}), {}, shape({})});
  CHECK(bench.plan(*inputs)->commands.empty());
}

TEST_CASE("planner: a rank above what kernels address") {
  GraphBuilder g;
  g.input({1, 1, 1, 1, 1, 1, 1, 1, 1});
  Bench bench(g);
  const auto inputs = bench.planner.largest_inputs();
  REQUIRE_FALSE(inputs.ok());
  CHECK(inputs.error().code() == ErrorCode::unsupported);
}

TEST_CASE("planner: an aliased view records nothing, another one a copy of the live bytes") {
  GraphBuilder g;
  const uint32_t x = g.in_memory(0, {9}, pte::GraphDtype::int8);
  g.inputs({x});
  const uint32_t near = g.tensor({9}, pte::GraphDtype::int8);
  const uint32_t kept = g.tensor({9}, pte::GraphDtype::int8);
  const uint32_t other = g.in_memory(0, {9}, pte::GraphDtype::int8);
  g.call("view", {x, near});
  g.call("view", {near, kept});
  g.call("same", {near, other});
  g.outputs({kept, other});
  Bench bench(g);
  CHECK(bench.memory.aliases == std::vector<bool>{false, true, false});
  const auto plan = bench.plan({shape({5})});
  REQUIRE(plan->commands.size() == 2);
  // `near` lies apart from x, which is overwritten; `kept` shares with near.
  CHECK(std::get<PlannedCopy>(plan->commands[0]) ==
        PlannedCopy{*bench.memory.storage_of[x], *bench.memory.storage_of[near], 8, 0});
  CHECK(plan->dispatches() == 1);
}

}  // namespace
}  // namespace ptero::graph
