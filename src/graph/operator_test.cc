// SPDX-License-Identifier: BSD-3-Clause
#include "graph/operator.h"

#include <doctest/doctest.h>

#include "base/result.h"

namespace ptero::graph {
namespace {

Status nothing(OpCall&) {
  return ok_status();
}

TEST_CASE("registry: finds by the whole name, lists sorted, keeps traits") {
  OperatorRegistry registry;
  registry.add("b.two", nothing, {.view = true, .mutates = {3, 4}});
  registry.add("a.one", nothing);
  REQUIRE(registry.find("b.two") != nullptr);
  CHECK(registry.find("b.two")->name == "b.two");
  CHECK(registry.find("b.two")->traits.view);
  CHECK(registry.find("b.two")->traits.mutates == std::vector<uint8_t>{3, 4});
  CHECK_FALSE(registry.find("a.one")->traits.view);
  CHECK(registry.find("b") == nullptr);
  CHECK(registry.find("") == nullptr);
  CHECK(registry.names() == std::vector<std::string_view>{"a.one", "b.two"});
  CHECK(registry.status().ok());
}

TEST_CASE("registry: a name that is given twice shows in the status; the first one stays") {
  OperatorRegistry registry;
  registry.add("a.one", nothing, {.view = true});
  registry.add("a.one", nothing);
  const Status status = registry.status();
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::internal);
  CHECK(status.error().message() == "Operator (a.one) is registered twice.");
  CHECK(registry.find("a.one")->traits.view);
}

}  // namespace
}  // namespace ptero::graph
