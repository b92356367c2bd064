// SPDX-License-Identifier: BSD-3-Clause
#include "graph/memory_plan.h"

#include <doctest/doctest.h>

#include "graph/testing/graph_builder.h"

namespace ptero::graph {
namespace {

using testing::GraphBuilder;

// Operators whose functions are never called: the memory plan looks at traits only.
const OperatorRegistry& operators() {
  static const OperatorRegistry registry = [] {
    const auto nothing = [](OpCall&) { return ok_status(); };
    OperatorRegistry ops;
    ops.add("make", nothing);  // [inputs..., out]
    ops.add("view", nothing, {.view = true, .mutates = {}});
    ops.add("prepack", nothing, {.view = true, .at_load = true, .mutates = {}});
    ops.add("write0", nothing, {.mutates = {0}});  // [written, x, out]
    ops.add("writes_list", nothing, {.mutates = {0}});
    return ops;
  }();
  return registry;
}

MemoryPlan planned(const GraphBuilder& builder) {
  Result<MemoryPlan> plan = plan_memory(builder.graph(), operators());
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().to_string()));
  // However values share, every tensor that has a storage fits into it.
  for (size_t id = 0; id < builder.graph().values.size(); ++id) {
    const auto* tensor = std::get_if<pte::GraphTensor>(&builder.graph().values[id]);
    REQUIRE((tensor != nullptr || !plan->storage_of[id]));
    if (plan->storage_of[id]) {
      CHECK(plan->storages.at(*plan->storage_of[id]).bytes >=
            *pte::tensor_bytes(tensor->dtype, tensor->dims));
    }
  }
  return std::move(plan).value();
}

const Storage& storage(const MemoryPlan& plan, uint32_t id) {
  return plan.storages[*plan.storage_of[id]];
}

bool together(const MemoryPlan& plan, uint32_t a, uint32_t b) {
  return *plan.storage_of[a] == *plan.storage_of[b];
}

TEST_CASE("memory plan: tensors of one memory id share a storage of the largest one's size") {
  GraphBuilder g;
  const uint32_t x = g.input({5});
  const uint32_t a = g.in_memory(3, {7});
  const uint32_t b = g.in_memory(3, {11});
  const uint32_t d = g.in_memory(3, {2});
  const uint32_t c = g.in_memory(2, {1}, pte::GraphDtype::boolean);
  g.call("make", {x, a});
  g.call("make", {a, c});
  g.call("make", {c, b});
  g.call("make", {b, d});
  g.outputs({d});
  const MemoryPlan plan = planned(g);
  CHECK(plan.storages.size() == 3);
  CHECK(together(plan, a, d));
  CHECK(together(plan, a, b));
  CHECK(storage(plan, a).bytes == 44);
  CHECK(storage(plan, x).bytes == 20);
  CHECK(storage(plan, c).bytes == 4);  // whole words
  CHECK(plan.bytes(gpu::MemoryKind::activations) == 68);
  CHECK(plan.bytes(gpu::MemoryKind::weights) == 0);
}

TEST_CASE("memory plan: an empty tensor still has something to bind") {
  GraphBuilder g;
  const uint32_t x = g.input({0, 5});
  CHECK(storage(planned(g), x).bytes == 4);
}

TEST_CASE("memory plan: a constant wins over a memory id, tied constants share") {
  GraphBuilder g;
  const uint32_t a = g.constant("tied", {4});
  const uint32_t b = g.constant("tied", {2, 2});
  const uint32_t other = g.constant("other", {4});
  const uint32_t bare = g.constant("", {4});
  const uint32_t bare_too = g.constant("", {4});
  const uint32_t y = g.in_memory(0, {4});
  g.tensor_at(a).mem_obj_id = 0;
  g.call("make", {a, b, other, bare, bare_too, y});
  g.outputs({y});
  const MemoryPlan plan = planned(g);
  CHECK(together(plan, a, b));
  CHECK_FALSE(together(plan, a, y));
  CHECK_FALSE(together(plan, a, other));
  CHECK_FALSE(together(plan, bare, bare_too));  // no key says that they are equal
  CHECK(storage(plan, a).kind == gpu::MemoryKind::weights);
  CHECK(storage(plan, a).constant == g.tensor_at(a).constant_id);
  CHECK(plan.storages.size() == 5);
  CHECK(plan.bytes(gpu::MemoryKind::weights) == 64);
}

TEST_CASE("memory plan: caches never share, though their keys are equal") {
  GraphBuilder g;
  const uint32_t read_only = g.constant("zeros", {8});
  const uint32_t k = g.constant("zeros", {8});
  const uint32_t v = g.constant("zeros", {8});
  const uint32_t read_only_too = g.constant("zeros", {8});
  const uint32_t x = g.input({8});
  const uint32_t y = g.tensor({8});
  const uint32_t z = g.tensor({8});
  g.tensor_at(k).mem_obj_id = 1;
  g.tensor_at(v).mem_obj_id = 1;
  g.call("write0", {k, x, y});
  g.call("write0", {v, read_only, read_only_too, z});
  const MemoryPlan plan = planned(g);
  CHECK_FALSE(together(plan, k, v));
  CHECK_FALSE(together(plan, k, read_only));
  CHECK_FALSE(together(plan, v, read_only));
  CHECK(together(plan, read_only, read_only_too));
  for (const uint32_t cache : {k, v}) {
    CHECK(storage(plan, cache).kind == gpu::MemoryKind::cache);
    CHECK(storage(plan, cache).constant == g.tensor_at(cache).constant_id);
  }
  CHECK(plan.bytes(gpu::MemoryKind::cache) == 64);
  CHECK(plan.bytes(gpu::MemoryKind::weights) == 32);
}

TEST_CASE("memory plan: a constant that a call produces is a cache too") {
  GraphBuilder g;
  const uint32_t x = g.input({8});
  const uint32_t state = g.constant("zeros", {8});
  const uint32_t weight = g.constant("zeros", {8});
  g.call("make", {x, weight, state});
  const MemoryPlan plan = planned(g);
  CHECK_FALSE(together(plan, state, weight));
  CHECK(storage(plan, state).kind == gpu::MemoryKind::cache);
  CHECK(storage(plan, weight).kind == gpu::MemoryKind::weights);
}

TEST_CASE("memory plan: caches in a list that is written in place") {
  GraphBuilder g;
  const uint32_t k = g.constant("zeros", {8});
  const uint32_t v = g.constant("zeros", {8});
  const uint32_t y = g.tensor({8});
  g.call("writes_list", {g.list({k, v}), y});
  const MemoryPlan plan = planned(g);
  CHECK_FALSE(together(plan, k, v));
  CHECK(storage(plan, v).kind == gpu::MemoryKind::cache);
}

TEST_CASE("memory plan: views of views share the first one's storage") {
  GraphBuilder g;
  const uint32_t x = g.input({2, 3});
  const uint32_t a = g.in_memory(0, {2, 3});
  const uint32_t b = g.in_memory(1, {6});
  const uint32_t c = g.in_memory(2, {3, 2});
  g.call("make", {x, a});
  g.call("view", {a, b});
  g.call("view", {b, c});
  g.outputs({c});
  const MemoryPlan plan = planned(g);
  CHECK(together(plan, a, c));
  CHECK(together(plan, b, c));
  CHECK(plan.aliases == std::vector<bool>{false, true, true});
  CHECK(plan.storages.size() == 2);  // what only the views had is gone
}

TEST_CASE("memory plan: a view of an input and a view of a constant share, as outputs too") {
  GraphBuilder g;
  const uint32_t x = g.input({6});
  const uint32_t weight = g.constant("w", {6});
  const uint32_t a = g.tensor({2, 3});
  const uint32_t b = g.tensor({2, 3});
  g.call("view", {x, a});
  g.call("view", {weight, b});
  g.outputs({a, b, x});
  const MemoryPlan plan = planned(g);
  CHECK(together(plan, x, a));
  CHECK(together(plan, weight, b));
  CHECK(storage(plan, b).kind == gpu::MemoryKind::weights);
}

// x -> view -> late, while `clobber` comes into x's memory between the view and its last use.
MemoryPlan plan_with_late_writer(bool is_output, bool through_list) {
  GraphBuilder g;
  const uint32_t x = g.in_memory(0, {6});
  g.inputs({x});
  const uint32_t view = g.in_memory(1, {2, 3});
  const uint32_t clobber = g.in_memory(0, {6});
  const uint32_t y = g.in_memory(2, {6});
  g.call("view", {x, view});
  g.call("make", {g.input({1}), clobber});
  if (!is_output) {
    g.call("make", {through_list ? g.list({view}) : view, y});
    g.outputs({y, clobber});
  } else {
    g.outputs({view, clobber});
  }
  MemoryPlan plan = planned(g);
  CHECK(plan.aliases[0] == together(plan, x, view));
  return plan;
}

TEST_CASE("memory plan: a view is copied when its input's memory is reused too early") {
  CHECK_FALSE(plan_with_late_writer(false, false).aliases[0]);
  CHECK_FALSE(plan_with_late_writer(false, true).aliases[0]);  // used as an item of a list
  CHECK_FALSE(plan_with_late_writer(true, false).aliases[0]);  // used as an output of the graph
}

TEST_CASE("memory plan: the early reuse counts for views of views") {
  GraphBuilder g;
  const uint32_t x = g.in_memory(0, {6});
  g.inputs({x});
  const uint32_t near = g.in_memory(1, {2, 3});
  const uint32_t far = g.in_memory(2, {3, 2});
  const uint32_t clobber = g.in_memory(0, {6});
  g.call("view", {x, near});
  g.call("view", {near, far});
  g.call("make", {g.input({1}), clobber});
  g.outputs({far, clobber});
  const MemoryPlan plan = planned(g);
  CHECK(plan.aliases == std::vector<bool>{true, false, false});
  CHECK_FALSE(together(plan, near, far));
}

TEST_CASE("memory plan: reuse after the view's last use, or before it, does no harm") {
  GraphBuilder g;
  const uint32_t x = g.input({6});
  const uint32_t before = g.in_memory(0, {6});
  const uint32_t a = g.in_memory(0, {6});
  const uint32_t view = g.in_memory(1, {2, 3});
  const uint32_t y = g.in_memory(2, {6});
  const uint32_t after = g.in_memory(0, {6});
  g.call("make", {x, before});
  g.call("make", {before, a});
  g.call("view", {a, view});
  g.call("make", {view, y});
  g.call("make", {y, after});
  g.outputs({after});
  const MemoryPlan plan = planned(g);
  CHECK(plan.aliases[2]);
  CHECK(together(plan, view, after));
}

TEST_CASE("memory plan: a view in the memory of its own input") {
  GraphBuilder g;
  const uint32_t x = g.in_memory(0, {6});
  g.inputs({x});
  const uint32_t view = g.in_memory(0, {2, 3});
  g.call("view", {x, view});
  g.outputs({view});
  CHECK(planned(g).aliases[0]);
}

TEST_CASE("memory plan: the call that reads the view last may not write below it") {
  GraphBuilder g;
  const uint32_t x = g.in_memory(0, {6});
  g.inputs({x});
  const uint32_t view = g.in_memory(1, {2, 3});
  const uint32_t y = g.in_memory(0, {6});
  g.call("view", {x, view});
  g.call("make", {view, y});
  g.outputs({y});
  CHECK_FALSE(planned(g).aliases[0]);
}

TEST_CASE("memory plan: no view of what is written in place while the view is needed") {
  for (const bool write_last : {false, true}) {
    GraphBuilder g;
    const uint32_t cache = g.constant("zeros", {6});
    const uint32_t x = g.input({6});
    const uint32_t view = g.tensor({2, 3});
    const uint32_t y = g.tensor({6});
    const uint32_t z = g.tensor({6});
    g.call("view", {cache, view});
    if (write_last) {
      g.call("make", {view, y});
      g.call("write0", {cache, x, z});
    } else {
      g.call("write0", {cache, x, z});
      g.call("make", {view, y});
    }
    g.outputs({y});
    const MemoryPlan plan = planned(g);
    CHECK(plan.aliases[0] == write_last);
    CHECK(together(plan, cache, view) == write_last);
  }
}

TEST_CASE("memory plan: a view that is itself written in place is a copy") {
  for (const bool as_result : {false, true}) {
    GraphBuilder g;
    const uint32_t x = g.input({6});
    const uint32_t view = g.tensor({2, 3});
    g.call("view", {x, view});
    if (as_result) {
      g.call("make", {view, x, view});
    } else {
      g.call("write0", {view, x, g.tensor({6})});
    }
    g.outputs({view});
    const MemoryPlan plan = planned(g);
    CHECK_FALSE(plan.aliases[0]);
    CHECK_FALSE(together(plan, x, view));
  }
}

TEST_CASE("memory plan: what has another size, or is no tensor, is no alias") {
  GraphBuilder g;
  const uint32_t x = g.input({6});
  const uint32_t smaller = g.tensor({5});
  const uint32_t other_type = g.tensor({6}, pte::GraphDtype::float16);
  const uint32_t item = g.tensor({6});
  g.call("view", {x, smaller});
  g.call("view", {x, other_type});
  g.call("view", {x, g.list({item})});
  g.call("view", {g.add(int64_t{1}), item});
  CHECK(planned(g).aliases == std::vector<bool>{false, false, false, false});
}

TEST_CASE("memory plan: what is prepacked shares its constant, used otherwise or not") {
  GraphBuilder g;
  const uint32_t weight = g.constant("w", {6});
  const uint32_t a = g.tensor({6});
  const uint32_t b = g.tensor({6});
  g.call("prepack", {weight, a});
  g.call("prepack", {weight, b});
  g.call("make", {weight, a, b, g.tensor({6})});
  const MemoryPlan plan = planned(g);
  CHECK(together(plan, weight, a));
  CHECK(together(plan, weight, b));
  CHECK(plan.bytes(gpu::MemoryKind::weights) == 24);
}

TEST_CASE("memory plan: a prepacked cache starts from its constant and is never copied again") {
  GraphBuilder g;
  const uint32_t zeros = g.constant("zeros", {6});
  const uint32_t zeros_too = g.constant("zeros", {6});
  const uint32_t x = g.input({6});
  const uint32_t k = g.tensor({6});
  const uint32_t v = g.tensor({6});
  g.call("prepack", {zeros, k});
  g.call("prepack", {zeros_too, v});
  g.call("write0", {k, x, g.tensor({6})});
  g.call("make", {v, x, v});  // the result is the cache
  const MemoryPlan plan = planned(g);
  CHECK(plan.aliases[0]);
  CHECK(plan.aliases[1]);
  CHECK_FALSE(together(plan, k, v));
  for (const uint32_t cache : {k, v}) {
    CHECK(storage(plan, cache).kind == gpu::MemoryKind::cache);
    CHECK(storage(plan, cache).constant.has_value());
  }
  CHECK(plan.bytes(gpu::MemoryKind::cache) == 48);
  CHECK(plan.bytes(gpu::MemoryKind::weights) == 0);  // nobody reads the constants themselves
}

TEST_CASE("memory plan: a prepacked constant keeps its bytes when the constant is written") {
  GraphBuilder g;
  const uint32_t cache = g.constant("zeros", {6});
  const uint32_t packed = g.tensor({6});
  g.call("prepack", {cache, packed});
  g.call("write0", {cache, g.input({6}), g.tensor({6})});
  g.outputs({packed});
  const MemoryPlan plan = planned(g);
  CHECK(plan.aliases[0]);
  CHECK_FALSE(together(plan, cache, packed));
  CHECK(storage(plan, cache).kind == gpu::MemoryKind::cache);
  CHECK(storage(plan, packed).kind == gpu::MemoryKind::weights);
  CHECK(storage(plan, packed).constant == g.tensor_at(cache).constant_id);
}

TEST_CASE("memory plan: unknown operators are all named, each once") {
  GraphBuilder g;
  const uint32_t x = g.input({6});
  g.call("zebra", {x, g.tensor({6})});
  g.call("make", {x, g.tensor({6})});
  g.call("apple", {x, g.tensor({6})});
  g.call("zebra", {x, g.tensor({6})});
  const Result<MemoryPlan> both = plan_memory(g.graph(), operators());
  REQUIRE_FALSE(both.ok());
  CHECK(both.error().code() == ErrorCode::unsupported);
  CHECK(both.error().message() == "This build does not run operators apple, zebra.");

  GraphBuilder one;
  one.call("zebra", {one.tensor({6})});
  CHECK(plan_memory(one.graph(), operators()).error().message() ==
        "This build does not run operator zebra.");

  GraphBuilder none;
  none.call("make", {});
  CHECK(plan_memory(none.graph(), operators()).error().message() ==
        "Operator (make) has no arguments.");
}

}  // namespace
}  // namespace ptero::graph
