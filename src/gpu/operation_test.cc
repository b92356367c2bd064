// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/operation.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "gpu/fault.h"

namespace ptero::gpu {
namespace {

// Finishes at the n-th attempt.
class Countdown : public Pending<std::unique_ptr<int>> {
 public:
  explicit Countdown(int turns, Result<int> outcome = 7)
      : turns_(turns), outcome_(std::move(outcome)) {}
  WaitTarget wait_target() const override { return {}; }
  int polls() const { return polls_; }

 private:
  bool poll() override {
    ++polls_;
    if (--turns_ > 0) {
      return false;
    }
    if (!outcome_.ok()) {
      return finish(outcome_.error());
    }
    return finish(std::make_unique<int>(*outcome_));
  }

  int turns_;
  int polls_ = 0;
  Result<int> outcome_;
};

TEST_CASE("operation: advances until it is done, and then stays done without another attempt") {
  Countdown operation(3);
  CHECK_FALSE(operation.done());
  CHECK_FALSE(operation.advance());
  CHECK_FALSE(operation.advance());
  CHECK_FALSE(operation.done());
  CHECK(operation.advance());
  CHECK(operation.done());
  CHECK(operation.advance());
  CHECK(operation.polls() == 3);
}

TEST_CASE("operation: the completion runs once, inside the advance() that finishes") {
  Countdown operation(2);
  int calls = 0;
  bool done_inside = false;
  operation.on_done([&] {
    ++calls;
    done_inside = operation.done();
    const Result<std::unique_ptr<int>> value = operation.take();  // the outcome is there already
    REQUIRE(value.ok());
    CHECK(**value == 7);
  });
  operation.advance();
  CHECK(calls == 0);
  operation.advance();
  CHECK(calls == 1);
  CHECK(done_inside);
  operation.advance();
  CHECK(calls == 1);
}

TEST_CASE("operation: a completion for what is done already runs at once") {
  Countdown operation(1);
  operation.advance();
  int calls = 0;
  operation.on_done([&] { ++calls; });
  CHECK(calls == 1);
  operation.advance();
  CHECK(calls == 1);
}

TEST_CASE("pending: the outcome comes once; too early and twice are errors") {
  Countdown operation(1);
  const auto early = operation.take();
  REQUIRE_FALSE(early.ok());
  CHECK(early.error().code() == ErrorCode::internal);
  CHECK(early.error().message().find("before the operation was done") != std::string::npos);
  operation.advance();
  const auto value = operation.take();
  REQUIRE(value.ok());
  CHECK(**value == 7);
  const auto twice = operation.take();
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().code() == ErrorCode::internal);
  CHECK(twice.error().message().find("twice") != std::string::npos);
}

TEST_CASE("pending: an error is an outcome like any other") {
  Countdown operation(1, Error(ErrorCode::device_lost, "The GPU device is lost."));
  CHECK(operation.advance());
  const auto outcome = operation.take();
  REQUIRE_FALSE(outcome.ok());
  CHECK(outcome.error().code() == ErrorCode::device_lost);
}

TEST_CASE("fault plan: meets the n-th event of its point, counted from when it was added") {
  FaultPlan plan;
  plan.add(FaultPoint::map, 2, FaultKind::hang);
  CHECK_FALSE(plan.hit(FaultPoint::map).has_value());
  CHECK_FALSE(plan.hit(FaultPoint::buffer).has_value());
  CHECK_FALSE(plan.hit(FaultPoint::buffer).has_value());  // events of other points do not count
  CHECK(plan.hit(FaultPoint::map) == FaultKind::hang);
  CHECK_FALSE(plan.hit(FaultPoint::map).has_value());
  CHECK(plan.count(FaultPoint::map) == 3);
  CHECK(plan.count(FaultPoint::buffer) == 2);
  CHECK(plan.count(FaultPoint::submit) == 0);
  plan.add(FaultPoint::map, 1, FaultKind::lose_device);
  plan.add(FaultPoint::map, 3, FaultKind::fail);
  CHECK(plan.hit(FaultPoint::map) == FaultKind::lose_device);
  CHECK_FALSE(plan.hit(FaultPoint::map).has_value());
  CHECK(plan.hit(FaultPoint::map) == FaultKind::fail);
}

}  // namespace
}  // namespace ptero::gpu
