// SPDX-License-Identifier: BSD-3-Clause
// SymInts through the planner: what is read as data, what makes a shape, what only the device
// knows.
#include "graph/scalars.h"

#include <limits>

#include <doctest/doctest.h>

#include "graph/planner.h"
#include "graph/testing/graph_builder.h"

namespace ptero::graph {
namespace {

using testing::GraphBuilder;

struct SlotParams {
  uint32_t slot;
};

constexpr gpu::BindingDecl kBindings[] = {{"x", false}, {"slots", false}, {"y", true}};
constexpr gpu::KernelSource kRead{
    .name = "read", .text = "", .bindings = kBindings, .params_size = sizeof(SlotParams)};
constexpr gpu::BindingDecl kSlots[] = {{"slots", true}};
constexpr gpu::KernelSource kWrite{
    .name = "write", .text = "", .bindings = kSlots, .params_size = sizeof(SlotParams)};

Result<int64_t> plus(int64_t a, int64_t b) {
  return a + b;
}
Result<int64_t> minus(int64_t a, int64_t b) {
  return a - b;
}
Result<int64_t> times(int64_t a, int64_t b) {
  return a * b;
}
Result<int64_t> divided(int64_t a, int64_t b) {
  PTERO_REJECT_IF(b == 0, invalid_argument, "Nothing is divided by 0.");
  return a / b;
}
constexpr ScalarFunction kFunctions[] = {
    {"plus", plus, 1}, {"minus", minus, -1}, {"times", times}, {"divided", divided}};

const OperatorRegistry& operators() {
  static const OperatorRegistry registry = [] {
    OperatorRegistry ops;
    // [x, at, y]: data at a place in 0 .. 8.
    ops.add("read", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
      PTERO_ASSIGN_OR_RETURN(const Slot at, op.slot(1, 0, 8));
      PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
      PTERO_RETURN_IF_ERROR(op.set_shape(y, x.shape));
      return op.dispatch({{&kRead}, {x, op.slots(), y}, {9, 4, 1}, SlotGrid{0, at, 1, 2}},
                         SlotParams{at.index});
    });
    // [x, n, y]: the first n.
    ops.add("first", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
      PTERO_RETURN_IF_ERROR(op.dispatch({{&kWrite}, {op.slots()}, {}}, SlotParams{0}));
      PTERO_ASSIGN_OR_RETURN(const int64_t n, op.integer(1));
      return op.set_shape(y, {static_cast<uint32_t>(n)});
    });
    // [x, out]: element 0.
    ops.add("element", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(const TensorRef x, op.tensor(0));
      PTERO_ASSIGN_OR_RETURN(const bool on_host, op.set_scalar_element(x, 0));
      if (on_host) {
        return ok_status();
      }
      PTERO_ASSIGN_OR_RETURN(const uint32_t slot, op.set_scalar_on_device());
      return op.dispatch({{&kWrite}, {op.slots()}, {}}, SlotParams{slot});
    });
    // [a, b, out]
    for (const ScalarFunction& function : kFunctions) {
      ops.add(std::string(function.name), [&function](OpCall& op) -> Status {
        PTERO_ASSIGN_OR_RETURN(const bool on_host, op.set_scalar(function, 0, 1));
        if (on_host) {
          return ok_status();
        }
        PTERO_ASSIGN_OR_RETURN(const uint32_t slot, op.set_scalar_on_device());
        return op.dispatch({{&kWrite}, {op.slots()}, {}}, SlotParams{slot});
      });
    }
    // [x, from, to, y]: the first so many, if that is the same in every run.
    ops.add("span", [](OpCall& op) -> Status {
      PTERO_ASSIGN_OR_RETURN(TensorRef y, op.output());
      const std::optional<int64_t> count = op.distance(1, 2);
      PTERO_REJECT_IF(!count, unsupported, "The distance varies.");
      return op.set_shape(y, {static_cast<uint32_t>(*count)});
    });
    // [x, x]: in place.
    ops.add("spoil", [](OpCall&) { return ok_status(); });
    return ops;
  }();
  return registry;
}

struct Bench {
  explicit Bench(const GraphBuilder& builder)
      : graph(builder.graph()),
        memory(plan_memory(graph, operators()).value()),
        planner(graph, memory, operators(), testing::default_device()) {}

  Result<PlannedRun> plan(std::vector<LiveInput> inputs) { return planner.plan(inputs); }
  uint32_t slot(uint32_t id) const { return *memory.slots.slot_of[id]; }

  pte::Graph graph;
  MemoryPlan memory;
  Planner planner;
};

template <typename T>
std::string message(const Result<T>& result) {
  return result.ok() ? "(no error)" : result.error().to_string();
}

std::span<const std::byte> bytes_of(const std::vector<int32_t>& values) {
  return std::as_bytes(std::span(values));
}

TEST_CASE("slots: every integer that fits has one") {
  GraphBuilder g;
  g.tensor({1});
  const uint32_t seven = g.add(int64_t{7});
  const uint32_t symbol = g.add(pte::SymInt{55});
  const uint32_t whole = g.add(-2.0);
  const uint32_t part = g.add(2.5);
  const uint32_t large = g.add(int64_t{1} << 31);
  const uint32_t poison = g.add(int64_t{kNoScalar});
  const SlotTable table = SlotTable::of(g.graph());
  CHECK(table.initial == std::vector<int32_t>{7, 0, -2});
  CHECK(table.slot_of[seven] == 0);
  CHECK(table.slot_of[symbol] == 1);
  CHECK(table.slot_of[whole] == 2);
  CHECK_FALSE(table.slot_of[0]);
  CHECK_FALSE(table.slot_of[part]);
  CHECK_FALSE(table.slot_of[large]);
  CHECK_FALSE(table.slot_of[poison]);
}

TEST_CASE("difference: as far as 64 bits go") {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  CHECK(difference(5, 7) == -2);
  CHECK(difference(-1, kMax) == kMin);
  CHECK(difference(-2, kMax) == std::nullopt);
  CHECK(difference(-1, kMin) == kMax);
  CHECK(difference(0, kMin) == std::nullopt);
}

TEST_CASE("data: one plan for every value, in slots, with a range and a grid") {
  GraphBuilder g;
  const uint32_t x = g.tensor({4});
  const uint32_t at = g.add(pte::SymInt{});
  g.inputs({x, at});
  const uint32_t y = g.tensor({4});
  const uint32_t z = g.tensor({4});
  const uint32_t three = g.add(int64_t{3});
  g.call("read", {x, at, y});
  g.call("read", {y, three, z});
  g.outputs({z, at});
  Bench bench(g);
  const auto first = bench.plan({{{4}, 0}, {{}, 5}});
  REQUIRE(first.ok());
  const auto second = bench.plan({{{4}, 0}, {{}, 8}});
  REQUIRE(second.ok());
  CHECK(first->plan == second->plan);
  CHECK(bench.planner.operator_calls() == 2);
  CHECK(first->plan->scalars_read.empty());
  CHECK_FALSE(first->plan->reads_scalars);
  CHECK(bench.planner.slots(*first) == std::vector<int32_t>{5, 3});
  CHECK(bench.planner.slots(*second) == std::vector<int32_t>{8, 3});
  const auto& dispatch = std::get<PlannedDispatch>(first->plan->commands[0]);
  CHECK(dispatch.bindings[1].id == *bench.memory.slot_storage);
  CHECK(dispatch.live_grid == LiveGrid{0, at, 1, 2});
  CHECK(first->plan->live_grids == std::vector<size_t>{0});  // an Int's grid does not move
  CHECK(message(bench.plan({{{4}, 0}, {{}, 9}})) ==
        "Argument 1 (9) of operator 0 (read) does not lie between 0 and 8.");
  CHECK(message(bench.plan({{{4}, 0}, {{}, -1}})) ==
        "Argument 1 (-1) of operator 0 (read) does not lie between 0 and 8.");
  CHECK(bench.plan({{{4}, 0}, {{}, 0}}).ok());
  CHECK(bench.planner.operator_calls() == 2);
}

TEST_CASE("data: an Int out of range fails when it is planned") {
  GraphBuilder g;
  g.call("read", {g.input({4}), g.add(int64_t{9}), g.tensor({4})});
  Bench bench(g);
  CHECK(message(bench.plan({{{4}, 0}})) ==
        "Argument 1 (9) does not lie between 0 and 8. / while planning operator 0 (read)");
}

TEST_CASE("elements of inputs: the host's when it has the bytes") {
  GraphBuilder g;
  const uint32_t x = g.input({2}, pte::GraphDtype::int32);
  const uint32_t at = g.add(pte::SymInt{});
  const uint32_t next = g.add(pte::SymInt{});
  g.call("element", {x, at});
  g.call("plus", {at, g.add(int64_t{2}), next});
  g.call("read", {x, next, g.tensor({2}, pte::GraphDtype::int32)});
  g.outputs({next});
  Bench bench(g);
  const std::vector<int32_t> four = {4, 0};
  const std::vector<int32_t> six = {6, 0};
  const auto first = bench.plan({{{2}, 0, bytes_of(four)}});
  REQUIRE(first.ok());
  CHECK(first->scalars[next] == 6);
  CHECK(first->plan->dispatches() == 1);
  const auto second = bench.plan({{{2}, 0, bytes_of(six)}});
  REQUIRE(second.ok());
  CHECK(second->plan == first->plan);
  CHECK(second->scalars[next] == 8);

  // Bytes on the device: kernels compute it, and what they found is checked afterwards.
  auto device = bench.plan({{{2}, 0}});
  REQUIRE(device.ok());
  CHECK(device->plan != first->plan);
  CHECK(device->plan->dispatches() == 3);
  CHECK(device->plan->device_scalars == std::vector<uint32_t>{at, next});
  CHECK(device->plan->reads_scalars);
  CHECK_FALSE(device->plan->awaits);
  CHECK_FALSE(device->scalars[next]);
  std::vector<int32_t> slots = {1, 1, 2, 3};
  slots[bench.slot(at)] = 6;
  slots[bench.slot(next)] = 8;
  CHECK(bench.planner.take_slots(*device, slots).ok());
  CHECK(device->scalars[next] == 8);
  slots[bench.slot(next)] = 9;
  CHECK(message(bench.planner.take_slots(*device, slots)) ==
        "Argument 1 (9) of operator 2 (read) does not lie between 0 and 8.");
  slots[bench.slot(next)] = kNoScalar;
  CHECK(message(bench.planner.take_slots(*device, slots)) ==
        fmt::format("SymInt (value {}), computed on the device, does not fit 32 bits.", next));
}

TEST_CASE("elements of inputs: not the host's when the graph writes the input") {
  GraphBuilder g;
  const uint32_t x = g.input({2}, pte::GraphDtype::int32);
  const uint32_t at = g.add(pte::SymInt{});
  g.call("spoil", {x, x});
  g.call("element", {x, at});
  g.outputs({at});
  Bench bench(g);
  const std::vector<int32_t> four = {4, 0};
  const auto run = bench.plan({{{2}, 0, bytes_of(four)}});
  REQUIRE(run.ok());
  CHECK(run->plan->device_scalars == std::vector<uint32_t>{at});
}

TEST_CASE("shapes: a SymInt that only the device knows splits the run, and is remembered") {
  GraphBuilder g;
  const uint32_t x = g.input({9}, pte::GraphDtype::int32);
  const uint32_t n = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({9});
  const uint32_t z = g.tensor({9});
  const uint32_t more = g.add(pte::SymInt{});
  g.call("element", {x, n});
  g.call("first", {x, n, y});
  g.call("plus", {n, g.add(int64_t{1}), more});
  g.call("first", {y, more, z});
  g.outputs({z, more});
  Bench bench(g);
  const std::vector<LiveInput> inputs = {{{9}, 0}};
  const auto run_with = [&](int32_t value) {
    auto run = bench.plan(inputs);
    REQUIRE(run.ok());
    CHECK(run->plan->awaits == n);
    CHECK(run->plan->next_call == 1);
    CHECK(run->plan->commands.size() == 1);  // nothing of the call that could not go on
    std::vector<int32_t> slots(bench.memory.slots.initial.size());
    slots[bench.slot(n)] = value;
    REQUIRE(bench.planner.take_slots(*run, slots).ok());
    auto rest = bench.planner.resume(*run, inputs);
    REQUIRE(rest.ok());
    CHECK(rest->plan->splits == 1);
    CHECK_FALSE(rest->plan->awaits);
    CHECK(rest->plan->output_shapes[0] == Shape{static_cast<uint32_t>(value) + 1});
    CHECK(rest->scalars[more] == value + 1);
    CHECK(bench.planner.slots(*rest)[bench.slot(more)] == value + 1);
    return rest->plan;
  };
  const auto three = run_with(3);
  CHECK(bench.planner.operator_calls() == 2 + 3);
  const auto five = run_with(5);
  CHECK(bench.planner.operator_calls() == 2 + 3 + 3);
  CHECK(three != five);
  CHECK(run_with(3) == three);
  CHECK(run_with(5) == five);
  CHECK(bench.planner.operator_calls() == 8);
}

TEST_CASE("shapes: a value that makes one is part of what a plan is for") {
  GraphBuilder g;
  const uint32_t x = g.input({9}, pte::GraphDtype::int32);
  const uint32_t n = g.add(pte::SymInt{});
  const uint32_t half = g.add(pte::SymInt{});
  const uint32_t y = g.tensor({9});
  g.call("element", {x, n});
  g.call("divided", {g.add(int64_t{12}), n, half});
  g.call("first", {x, half, y});
  g.outputs({y});
  Bench bench(g);
  const auto with = [&](int32_t value) {
    const std::vector<int32_t> bytes(9, value);
    return bench.plan({{{9}, 0, bytes_of(bytes)}});
  };
  REQUIRE(with(3).ok());
  CHECK(with(3)->plan->output_shapes[0] == Shape{4});
  CHECK(with(4)->plan->output_shapes[0] == Shape{3});
  const uint64_t calls = bench.planner.operator_calls();
  CHECK(with(3)->plan->output_shapes[0] == Shape{4});
  CHECK(bench.planner.operator_calls() == calls);
  CHECK(message(with(0)) == "Nothing is divided by 0. / while planning operator 1 (divided)");
  CHECK(message(with(1)) ==
        "Dimension 0 (12) of the result [12] exceeds the bound of the file (9). / while planning "
        "operator 2 (first)");
}

TEST_CASE("distance: bases cancel out, whatever their values") {
  const auto distance = [](auto&& build) {
    GraphBuilder g;
    const uint32_t at = g.add(pte::SymInt{});
    const uint32_t x = g.tensor({9});
    g.inputs({x, at});
    const auto [from, to] = build(g, at);
    g.call("span", {x, from, to, g.tensor({9})});
    Bench bench(g);
    const auto run = bench.plan({{{9}, 0}, {{}, 1000}});
    CHECK((run.ok() || run.error().message() == "The distance varies."));
    return run.ok() && run->plan->scalars_read.empty();
  };
  const auto call = [](GraphBuilder& g, const char* name, uint32_t a, uint32_t b) {
    const uint32_t out = g.add(pte::SymInt{});
    g.call(name, {a, b, out});
    return out;
  };
  using Ends = std::pair<uint32_t, uint32_t>;
  CHECK(distance([&](GraphBuilder& g, uint32_t at) {
    return Ends(at, call(g, "plus", at, g.add(int64_t{2})));
  }));
  CHECK(distance([&](GraphBuilder& g, uint32_t at) {
    return Ends(at, call(g, "plus", g.add(int64_t{2}), at));
  }));
  CHECK(distance([&](GraphBuilder& g, uint32_t at) {
    return Ends(call(g, "minus", at, g.add(int64_t{2})), at);
  }));
  CHECK(distance([&](GraphBuilder& g, uint32_t at) {  // (at + 5) - at
    return Ends(g.add(int64_t{0}), call(g, "minus", call(g, "plus", at, g.add(int64_t{5})), at));
  }));
  CHECK_FALSE(distance([&](GraphBuilder& g, uint32_t at) {
    return Ends(at, call(g, "times", at, g.add(int64_t{2})));
  }));
  CHECK_FALSE(distance([&](GraphBuilder& g, uint32_t at) {
    return Ends(at, call(g, "minus", g.add(int64_t{2}), at));
  }));
  CHECK_FALSE(
      distance([&](GraphBuilder& g, uint32_t at) { return Ends(at, call(g, "plus", at, at)); }));
  CHECK_FALSE(distance([&](GraphBuilder& g, uint32_t at) { return Ends(g.add(int64_t{0}), at); }));
}

}  // namespace
}  // namespace ptero::graph
