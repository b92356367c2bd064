// SPDX-License-Identifier: BSD-3-Clause
#include "graph/op_call.h"

#include <limits>

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"

namespace ptero::graph {
namespace {

using testing::GraphBuilder;

constexpr gpu::BindingDecl kBindings[] = {{"x", false}, {"y", true}};
constexpr gpu::KernelSource kPlain{.name = "plain", .text = "", .bindings = kBindings};
constexpr gpu::KernelSource kWithParams{
    .name = "with_params", .text = "", .bindings = kBindings, .params_size = 8};

// One call of an operator, whose body is the test's. Value 0 is a SymInt that nothing sets, value
// 1 one that is 12.
class OneCall {
 public:
  OneCall() {
    unset_ = g.add(pte::SymInt{5});
    set_ = g.add(pte::SymInt{0});
  }

  void make(std::vector<uint32_t> args) {
    g.call("op", std::move(args));
    const auto count = g.graph().values.size();
    live.shapes.resize(count);
    live.scalars.resize(count);
    live.scalars[set_] = {ScalarState::Where::host, 12, set_, 0};
    memory.slots = SlotTable::of(g.graph());
    memory.slot_storage = 99;
    for (uint32_t id = 0; id < count; ++id) {
      memory.storage_of.push_back(100 + id);
      if (const auto* tensor = std::get_if<pte::GraphTensor>(&g.graph().values[id])) {
        live.shapes[id] = Shape::from(tensor->dims).value();
      }
    }
  }
  OpCall op(bool alias = false) {
    memory.aliases = {alias};
    return OpCall(g.graph(), 0, device, memory, host_inputs, live, plan, pool);
  }

  GraphBuilder g;
  DeviceFacts device = testing::default_device();
  LiveValues live;
  Plan plan;
  ScratchPool pool;
  MemoryPlan memory;
  std::vector<std::span<const std::byte>> host_inputs;
  uint32_t unset_ = 0;
  uint32_t set_ = 0;
};

template <typename T>
std::string message(const Result<T>& result) {
  return result.ok() ? "(no error)" : result.error().to_string();
}

TEST_CASE("arguments: integers in every form that exporters give them") {
  OneCall c;
  const uint32_t i = c.g.add(int64_t{-7});
  const uint32_t d = c.g.add(3.0);
  const uint32_t half = c.g.add(0.5);
  const uint32_t huge = c.g.add(1e300);
  const uint32_t nan = c.g.add(std::numeric_limits<double>::quiet_NaN());
  const uint32_t null = c.g.add(pte::Null{});
  const uint32_t flag = c.g.add(true);
  const uint32_t last = c.g.add(std::numeric_limits<int64_t>::max());
  c.make({i, d, c.set_, half, huge, nan, null, flag, c.unset_, last});
  OpCall op = c.op();
  CHECK(*op.integer(0) == -7);
  CHECK(*op.integer(1) == 3);
  CHECK(*op.integer(9) == std::numeric_limits<int64_t>::max());
  CHECK(c.plan.scalars_read.empty());
  CHECK(*op.integer(2) == 12);
  CHECK(*op.integer(2) == 12);
  CHECK(c.plan.scalars_read == std::vector<std::pair<uint32_t, int64_t>>{{c.set_, 12}});
  CHECK(message(op.integer(3)) == fmt::format("Value {} (a Double) is not an integer.", half));
  CHECK_FALSE(op.integer(4).ok());
  CHECK_FALSE(op.integer(5).ok());
  CHECK(message(op.integer(6)) == fmt::format("Value {} (a Null) is not an integer.", null));
  CHECK_FALSE(op.integer(7).ok());
  CHECK(message(op.integer(8)) == "SymInt (value 0) is used before anything sets it.");
  CHECK(message(op.integer(10)) == "Argument 10 is missing; there are 10.");
  CHECK(*op.integer_or(6, 42) == 42);
  CHECK(*op.integer_or(0, 42) == -7);
  CHECK_FALSE(op.integer_or(3, 42).ok());
  CHECK_FALSE(op.integer_or(10, 42).ok());  // missing is not Null
}

TEST_CASE("arguments: numbers, flags and strings") {
  OneCall c;
  const uint32_t d = c.g.add(0.5);
  const uint32_t i = c.g.add(int64_t{1});
  const uint32_t null = c.g.add(pte::Null{});
  const uint32_t flag = c.g.add(true);
  const uint32_t two = c.g.add(int64_t{2});
  const uint32_t text = c.g.add(std::string("floor"));
  c.make({d, i, null, flag, two, text});
  OpCall op = c.op();
  CHECK(*op.number(0) == 0.5);
  CHECK(*op.number(1) == 1.0);  // equal scalars share one value, so a Double may come as an Int
  CHECK(*op.number_or(2, -1.5) == -1.5);
  CHECK(*op.number_or(0, -1.5) == 0.5);
  CHECK(message(op.number(2)) == "Argument 2 (a Null) is not a number.");
  CHECK(message(op.number(3)) == "Argument 3 (a Bool) is not a number.");
  CHECK(*op.boolean(3));
  CHECK(*op.boolean(1));
  CHECK(message(op.boolean(4)) == "Argument 4 (a Int) is not a Bool.");
  CHECK(*op.string(5) == "floor");
  CHECK(message(op.string(0)) == "Argument 0 (a Double) is not a String.");
  CHECK(op.is_null(2));
  CHECK_FALSE(op.is_null(0));
  CHECK_FALSE(op.is_null(6));
}

TEST_CASE("arguments: lists of integers are numbers, or values that may be symbolic") {
  OneCall c;
  const uint32_t plain = c.g.integers({4, -1});
  const uint32_t mixed = c.g.list({c.g.add(int64_t{1}), c.set_, c.g.add(8.0)});
  const uint32_t unset = c.g.list({c.unset_});
  const uint32_t tensors = c.g.list({c.g.tensor({2})});
  const uint32_t empty = c.g.integers({});
  const uint32_t one = c.g.add(int64_t{1});
  c.make({plain, mixed, unset, tensors, empty, one});
  OpCall op = c.op();
  CHECK(*op.integer_list(0) == std::vector<int64_t>{4, -1});
  CHECK(*op.integer_list(1) == std::vector<int64_t>{1, 12, 8});
  CHECK(c.plan.scalars_read == std::vector<std::pair<uint32_t, int64_t>>{{c.set_, 12}});
  CHECK(message(op.integer_list(2)) ==
        "SymInt (value 0) is used before anything sets it. / in argument 2");
  CHECK_FALSE(op.integer_list(3).ok());
  CHECK(op.integer_list(4)->empty());
  CHECK(message(op.integer_list(5)) == "Argument 5 (a Int) is not a list of integers.");
}

TEST_CASE("arguments: tensors, absent tensors and lists of tensors") {
  OneCall c;
  const uint32_t x = c.g.tensor({2, 3}, pte::GraphDtype::float16);
  const uint32_t w = c.g.constant("w", {5}, pte::GraphDtype::int8);
  const uint32_t null = c.g.add(pte::Null{});
  const uint32_t both = c.g.list({x, w});
  const uint32_t wrong = c.g.list({x, null});
  c.make({x, w, null, both, wrong});
  c.live.shapes[x] = {1, 3};
  OpCall op = c.op();
  const TensorRef tensor = *op.tensor(0);
  CHECK(tensor.id == x);
  CHECK(tensor.shape == Shape{1, 3});
  CHECK(tensor.bytes() == 6);
  CHECK(tensor.is_float());
  CHECK_FALSE(tensor.constant);
  CHECK(op.bound(tensor) == Shape{2, 3});
  CHECK(op.tensor(1)->constant);
  CHECK(op.tensor(1)->bytes() == 5);
  CHECK_FALSE(op.tensor(1)->is_float());
  CHECK(message(op.tensor(2)) == "Argument 2 (a Null) is not a Tensor.");
  CHECK(message(op.tensor(3)) == "Argument 3 (a ValueList) is not a Tensor.");
  CHECK_FALSE(op.optional_tensor(2)->has_value());
  CHECK((*op.optional_tensor(0))->id == x);
  CHECK_FALSE(op.optional_tensor(3).ok());
  CHECK_FALSE(op.optional_tensor(5).ok());
  const auto list = op.tensor_list(3);
  REQUIRE(list.ok());
  REQUIRE(list->size() == 2);
  CHECK((*list)[1].id == w);
  CHECK(message(op.tensor_list(4)) == "Argument 4 (a ValueList) is not a list of Tensors.");
  CHECK(message(op.tensor_list(0)) == "Argument 0 (a Tensor) is not a list of Tensors.");
}

TEST_CASE("outputs: one, several, none of the kind") {
  OneCall one;
  const uint32_t y = one.g.tensor({4});
  one.make({y});
  CHECK(one.op().output()->id == y);
  CHECK(message(one.op().output(1)) == "Output 1 is missing; the call produces one.");

  OneCall two;
  const uint32_t a = two.g.tensor({4});
  const uint32_t b = two.g.tensor({4});
  two.make({two.g.list({a, b})});
  CHECK(two.op().output(1)->id == b);
  CHECK(message(two.op().output(2)) == "Output 2 is missing; the call produces 2.");

  OneCall scalar;
  scalar.make({scalar.unset_});
  CHECK(message(scalar.op().output()) == "Argument 0 (a SymInt) is not a Tensor to produce.");
  CHECK(scalar.op().set_scalar(4).ok());
  CHECK(scalar.live.scalars[scalar.unset_].value == 4);
  CHECK(message(one.op().set_scalar(4)) == "Argument 0 (a Tensor) is not a SymInt to produce.");
}

TEST_CASE("outputs: a shape within the bounds, seen by later readers") {
  OneCall c;
  c.make({c.g.tensor({4, 6})});
  OpCall op = c.op();
  TensorRef y = *op.output();
  CHECK(y.shape == Shape{4, 6});
  CHECK(op.set_shape(y, {4, 5}).ok());
  CHECK(y.shape == Shape{4, 5});
  CHECK(op.output()->shape == Shape{4, 5});
  CHECK(op.bound(y) == Shape{4, 6});
  CHECK(message(op.set_shape(y, {4, 7})) ==
        "Dimension 1 (7) of the result [4, 7] exceeds the bound of the file (6).");
  CHECK(message(op.set_shape(y, {24})) ==
        "Rank (1) of the result [24] differs from what the file states (2).");
  CHECK(op.output()->shape == Shape{4, 5});
}

TEST_CASE("scratch: a call's own while it lasts, free for the next one, after errors too") {
  OneCall c;
  c.make({c.g.tensor({64}), c.g.tensor({64})});
  {
    OpCall op = c.op();
    const auto first = op.scratch(64);
    const auto second = op.scratch(64);
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    CHECK(first->id != second->id);
    CHECK(c.pool.leased() == 2);
    CHECK_FALSE(op.tensor(7).ok());  // where an operator would give up
  }
  CHECK(c.pool.leased() == 0);
  OpCall next = c.op();
  CHECK(next.scratch(32)->id == 0);
  CHECK(next.scratch(28)->id == 2);  // 64 bytes are more than twice as many
  CHECK(c.plan.scratch == std::vector<uint64_t>{64, 64, 28});
}

TEST_CASE("dispatch: bindings are storages and scratch, in whole or in part") {
  OneCall c;
  const uint32_t x = c.g.tensor({64});
  c.make({x, c.g.tensor({64})});
  OpCall op = c.op();
  const TensorRef in = *op.tensor(0);
  const auto first = op.scratch(5);
  const auto second = op.scratch(12);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  struct Params {
    uint32_t a, b;
  };
  REQUIRE(op.dispatch({{&kWithParams}, {BufferRef(in, 16, 32), *second}, {3, 2, 1}}, Params{7, 9})
              .ok());
  CHECK(c.plan.scratch == std::vector<uint64_t>{8, 12});
  REQUIRE(c.plan.commands.size() == 1);
  const auto& dispatch = std::get<PlannedDispatch>(c.plan.commands[0]);
  CHECK(dispatch.bindings ==
        std::vector<PlannedBinding>{{false, 100 + x, 16, 32}, {true, 1, 0, 0}});
  CHECK(dispatch.grid == gpu::Grid{3, 2, 1});
  CHECK(dispatch.params ==
        std::vector<std::byte>{std::byte{7}, {}, {}, {}, std::byte{9}, {}, {}, {}});
  CHECK(message(op.scratch(0)) == "Scratch of 0 bytes is asked for.");
}

TEST_CASE("dispatch: what does not fit the kernel or the device is our own error") {
  OneCall c;
  c.make({c.g.tensor({64}), c.g.tensor({64})});
  OpCall op = c.op();
  const TensorRef x = *op.tensor(0);
  CHECK(message(op.dispatch({{&kPlain}, {x}, {}})) ==
        "Number of buffers (1) for kernel (plain) differs from what it declares (2).");
  CHECK(message(op.dispatch({{&kPlain}, {x, x, x}, {}})) ==
        "Number of buffers (3) for kernel (plain) differs from what it declares (2).");
  CHECK(message(op.dispatch({{&kWithParams}, {x, x}, {}})) ==
        "Size of the parameters (0 bytes) for kernel (with_params) differs from its Params (8 "
        "bytes).");
  CHECK(message(op.dispatch({{&kPlain}, {x, x}, {65536, 1, 1}})) ==
        "Grid (65536 x 1 x 1 workgroups) of kernel (plain) exceeds the limit (65535).");
  CHECK_FALSE(op.dispatch({{&kPlain}, {x, x}, {1, 1, 65536}}).ok());
  CHECK(op.dispatch({{&kPlain}, {x, x}, {65536, 0, 1}}).ok());
  CHECK(c.plan.commands.empty());
  CHECK(op.dispatch({{&kPlain}, {x, x}, {65535, 65535, 1}}).ok());
  CHECK(c.plan.commands.size() == 1);
}

TEST_CASE("views: a copy of whole words, nothing when aliased, in place or empty") {
  OneCall c;
  const uint32_t x = c.g.tensor({3, 2}, pte::GraphDtype::boolean);
  const uint32_t y = c.g.tensor({6}, pte::GraphDtype::boolean);
  c.make({x, y});
  TensorRef from = *c.op().tensor(0);
  TensorRef to = *c.op().output();
  CHECK(c.op(true).copy_unless_aliased(from, to).ok());
  CHECK(c.plan.commands.empty());
  CHECK(c.op().copy_unless_aliased(from, to).ok());
  REQUIRE(c.plan.commands.size() == 1);
  CHECK(std::get<PlannedCopy>(c.plan.commands[0]) == PlannedCopy{100 + x, 100 + y, 8, 0});
  CHECK(c.plan.dispatches() == 0);

  to.shape = {5};
  CHECK(message(c.op().copy_unless_aliased(from, to)) ==
        "A view of [3, 2] elements as [5] does not hold the same bytes.");
  to.shape = {0};
  from.shape = {0, 2};
  CHECK(c.op().copy_unless_aliased(from, to).ok());
  c.memory.storage_of[y] = c.memory.storage_of[x];
  to.shape = {6};
  from.shape = {3, 2};
  CHECK(c.op().copy_unless_aliased(from, to).ok());
  CHECK(c.plan.commands.size() == 1);
}

TEST_CASE("grids: folded over two dimensions at the device's limit") {
  gpu::Limits limits;
  limits.max_workgroups_per_dimension = 65535;
  CHECK(*fold_grid(0, limits) == gpu::Grid{0, 1, 1});
  CHECK(*fold_grid(1, limits) == gpu::Grid{1, 1, 1});
  CHECK(*fold_grid(65535, limits) == gpu::Grid{65535, 1, 1});
  CHECK(*fold_grid(65536, limits) == gpu::Grid{32768, 2, 1});
  CHECK(*fold_grid(65537, limits) == gpu::Grid{32769, 2, 1});
  CHECK(*fold_grid(uint64_t{65535} * 65535, limits) == gpu::Grid{65535, 65535, 1});
  CHECK_FALSE(fold_grid(uint64_t{65535} * 65535 + 1, limits).has_value());
  CHECK_FALSE(fold_grid(UINT64_MAX, limits).has_value());
  limits.max_workgroups_per_dimension = 7;
  for (uint64_t workgroups = 0; workgroups <= 49; ++workgroups) {
    const gpu::Grid grid = *fold_grid(workgroups, limits);
    CHECK(grid.x <= 7);
    CHECK(grid.y <= 7);
    CHECK(uint64_t{grid.x} * grid.y >= workgroups);
    CHECK(uint64_t{grid.x} * grid.y < workgroups + grid.y);  // less than a column in vain
  }
}

}  // namespace
}  // namespace ptero::graph
