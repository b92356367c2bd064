// SPDX-License-Identifier: BSD-3-Clause
#include "graph/fit.h"

#include <string>

#include <doctest/doctest.h>

namespace ptero::graph {
namespace {

MemoryPlan plan_of(std::vector<Storage> storages) {
  MemoryPlan plan;
  plan.storages = std::move(storages);
  return plan;
}

std::string refusal(const Status& status) {
  return status.ok() ? "" : status.error().message();
}

TEST_CASE("fit: the largest buffer counts, with its name, both numbers and what helps") {
  const MemoryPlan plan = plan_of({{"head.weight", 3000, gpu::MemoryKind::weights, 0},
                                   {"cache 1", 1000, gpu::MemoryKind::cache, 1},
                                   {"x", 20, gpu::MemoryKind::activations, {}}});
  CHECK(check_fit(plan, "Toy", 3000, {}).ok());
  const Status status = check_fit(plan, "Toy", 2999, {});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::out_of_memory);
  for (const char* part : {"(Toy)", "head.weight", "3000 bytes", "at most 2999", "fewer bits"}) {
    CAPTURE(part);
    CHECK(refusal(status).find(part) != std::string::npos);
  }
  CHECK(refusal(check_fit(plan_of({{"c", 9, gpu::MemoryKind::cache, 0}}), "Toy", 8, {}))
            .find("shorter context") != std::string::npos);
  CHECK(refusal(check_fit(plan_of({{"x", 9, gpu::MemoryKind::activations, {}}}), "Toy", 8, {}))
            .find("fewer tokens") != std::string::npos);
  CHECK(check_fit(plan_of({}), "Toy", 0, 0).ok());
}

TEST_CASE("fit: weights, caches and activations together against the memory, if it is known") {
  const MemoryPlan plan = plan_of({{"w", 3 << 20, gpu::MemoryKind::weights, 0},
                                   {"c", 2 << 20, gpu::MemoryKind::cache, 1},
                                   {"x", 1 << 20, gpu::MemoryKind::activations, {}}});
  CHECK(check_fit(plan, "Toy", 3 << 20, 6 << 20).ok());
  const Status status = check_fit(plan, "Toy", 3 << 20, (6 << 20) - 1);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::out_of_memory);
  for (const char* part : {"takes 6291456 bytes", "3.0 of weights", "2.0 of caches",
                           "1.0 of activations", "has 6291455"}) {
    CAPTURE(part);
    CHECK(refusal(status).find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace ptero::graph
