// SPDX-License-Identifier: BSD-3-Clause
// Whatever goes wrong comes back as an error in bounded time, and the process goes on.
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include "gpu/fault.h"
#include "gpu/selfcheck/check_add.wgsl.h"
#include "gpu/selfcheck/check_chain.wgsl.h"
#include "gpu/selfcheck/check_rms_norm.wgsl.h"
#include "gpu/selfcheck/selfcheck.h"
#include "gpu/testing/does_not_compile.wgsl.h"
#include "gpu/testing/test_device.h"

namespace ptero::gpu {
namespace {

using namespace testing;
using namespace wgsl;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr FaultPoint kPoints[] = {FaultPoint::buffer, FaultPoint::pipeline, FaultPoint::map,
                                  FaultPoint::submit};
constexpr std::string_view kPointNames[] = {"buffer", "pipeline", "map", "submit"};
constexpr std::string_view kKindNames[] = {"fail", "hang", "lose_device"};

// Immediates off, so that the uniform ring is among the buffers.
Device open_with(const std::shared_ptr<FaultPlan>& faults) {
  DeviceOptions options;
  options.disabled = {Feature::immediates};
  options.faults = faults;
  return open_device(options);
}

void check_workload(Device& device, Where where = Where::current()) {
  check_near(must(run_workload(device), where), workload_golden(), 0, where);
}

// The time of a wait that runs out. The bound has slack for a busy machine; a wait that never ends
// runs into the time limit of the whole program.
void check_timeout(Operation& operation, milliseconds timeout, Where where = Where::current()) {
  const Clock::time_point start = Clock::now();
  const Status status = wait(operation, timeout);
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  CAPTURE(took.count());
  expect_error(status, ErrorCode::timeout, {fmt::format("within {} ms", timeout.count())}, where);
  CHECK(took >= timeout);
  CHECK(took < timeout + milliseconds(5'000));
  CHECK_FALSE(operation.done());
}

TEST_CASE("wait: a map that never answers is a timeout, and the device goes on") {
  const auto faults = std::make_shared<FaultPlan>();
  Device device = open_with(faults);
  check_workload(device);
  const Buffer buffer = upload(device, "values", std::vector<uint32_t>{1, 2, 3});
  faults->add(FaultPoint::map, 1, FaultKind::hang);
  auto reading = started(device.read(buffer, 0, 12));
  check_timeout(*reading, milliseconds(150));
  check_timeout(*reading, milliseconds(1));  // it may be waited for again
  expect_error(reading->take(), ErrorCode::internal, {"before the operation was done"});
  CHECK(download<uint32_t>(device, buffer) == std::vector<uint32_t>{1, 2, 3});
  reading.reset();
  check_workload(device);
}

TEST_CASE("wait: a pipeline that is never ready is a timeout, and the device goes on") {
  const auto faults = std::make_shared<FaultPlan>();
  faults->add(FaultPoint::pipeline, 1, FaultKind::hang);
  Device device = open_with(faults);
  const auto preparing = device.prepare({{&kCheckRmsNorm}, {&kCheckAdd}});
  check_timeout(*preparing, milliseconds(150));
  check_workload(device);  // other kernels, one of them from the same call
}

TEST_CASE("wait: for as long as the caller goes on") {
  const auto faults = std::make_shared<FaultPlan>();
  Device device = open_with(faults);
  const Buffer buffer = upload(device, "values", std::vector<uint32_t>{1, 2, 3});
  faults->add(FaultPoint::map, 1, FaultKind::hang);
  const auto hanging = started(device.read(buffer, 0, 12));
  int asked = 0;
  const auto twice = [&asked] { return ++asked < 3; };
  expect_error(wait_while(*hanging, twice, "Nobody waits any more."), ErrorCode::cancelled,
               {"Nobody waits any more."});
  CHECK(asked == 3);
  CHECK_FALSE(hanging->done());

  const auto reading = started(device.read(buffer, 0, 12));
  CHECK(wait_while(*reading, [] { return true; }, "Nobody waits any more.").ok());
  CHECK(reading->done());
  CHECK(wait_while(
            *reading, [] { return false; }, "Nobody waits any more.")
            .ok());  // nothing to stop
}

TEST_CASE("wait: sleeps only on what is still to come") {
  Device device = open_device();
  const auto preparing = device.prepare({{&kCheckRmsNorm}, {&kCheckAdd}});
  CHECK(preparing->wait_target().instance != nullptr);
  CHECK(preparing->wait_target().futures.size() == 4);
  while (!preparing->advance()) {
    // The modules are checked by now. A future that is through would turn sleeping into spinning.
    const size_t futures = preparing->wait_target().futures.size();
    REQUIRE(futures >= 1);
    REQUIRE(futures <= 2);
    std::this_thread::sleep_for(milliseconds(1));
  }
  CHECK(preparing->wait_target().futures.empty());
  CHECK(must(preparing->take()).size() == 2);
}

TEST_CASE("wait: time that runs out early takes nothing away") {
  Device device = open_device();
  const Buffer buffer = upload(device, "values", std::vector<uint32_t>{5});
  const auto reading = started(device.read(buffer, 0, 4));
  const Status status = wait(*reading, milliseconds(0));
  if (!status.ok()) {  // the GPU may have been quicker
    CHECK(status.error().code() == ErrorCode::timeout);
  }
  must(wait(*reading, kDefaultTimeout));
  CHECK(values_of<uint32_t>(must(reading->take()).front()).front() == 5);
}

TEST_CASE("faults: at every point, first to last, an error comes back and the process goes on") {
  const auto counter = std::make_shared<FaultPlan>();
  {
    Device device = open_with(counter);
    check_workload(device);
  }
  for (const FaultPoint point : kPoints) {
    const uint64_t events = counter->count(point);
    CAPTURE(kPointNames[static_cast<size_t>(point)]);
    REQUIRE(events >= 1);
    for (uint64_t nth = 1; nth <= events; ++nth) {
      CAPTURE(nth);
      for (const FaultKind kind : {FaultKind::fail, FaultKind::hang, FaultKind::lose_device}) {
        CAPTURE(kKindNames[static_cast<size_t>(kind)]);
        const bool hangs =
            kind == FaultKind::hang && (point == FaultPoint::map || point == FaultPoint::pipeline);
        const auto faults = std::make_shared<FaultPlan>();
        faults->add(point, nth, kind);
        Device device = open_with(faults);
        const auto outcome = run_workload(device, hangs ? milliseconds(60) : kDefaultTimeout);
        const bool lost = kind == FaultKind::lose_device;
        const ErrorCode code = lost                          ? ErrorCode::device_lost
                               : hangs                       ? ErrorCode::timeout
                               : point == FaultPoint::buffer ? ErrorCode::out_of_memory
                                                             : ErrorCode::internal;
        expect_error(outcome, code, {hangs ? "did not answer" : "injected fault"});
        if (lost) {
          expect_error(run_workload(device), ErrorCode::device_lost, {"make a new device"});
        } else if (!(hangs && point == FaultPoint::pipeline)) {
          check_workload(device);
          CHECK(device.stats().bytes_by_kind[size_t(MemoryKind::other)] == 0);
        }
      }
    }
  }
  Device device = open_device();
  check_workload(device);
}

TEST_CASE("faults: a self-check reports them and runs the rest") {
  const auto faults = std::make_shared<FaultPlan>();
  faults->add(FaultPoint::pipeline, 1, FaultKind::fail);
  Device device = open_with(faults);
  const SelfCheckReport report = must(self_check(device));
  CHECK_FALSE(report.passed());
  REQUIRE(report.checks.size() >= 3);
  CHECK(report.checks[0].outcome == CheckOutcome::failed);
  CHECK(report.checks[0].detail.find("injected fault") != std::string::npos);
  for (size_t i = 1; i < report.checks.size(); ++i) {
    CAPTURE(report.checks[i].detail);
    CHECK(report.checks[i].outcome != CheckOutcome::failed);
  }
}

TEST_CASE("faults: a kernel that does not compile gives the compiler's words, file and line") {
  Device device = open_device();
  for (int attempt = 0; attempt < 2; ++attempt) {  // a failure is not kept
    expect_error(device.prepare({{&kCheckAdd}, {&kDoesNotCompile}}), ErrorCode::internal,
                 {"Kernel (does_not_compile) does not compile", "no_such_value",
                  "gpu/testing/does_not_compile.wgsl:10:"});
  }
  expect_error(device.prepare({{&kCheckChain, "const one = 1;\nconst two = nothing;\n"}}),
               ErrorCode::internal, {"check_chain prelude:", "nothing"});
  CHECK(must(device.prepare({{&kCheckChain}})).front().name() == "check_chain");
  check_workload(device);
}

TEST_CASE("loss: in the middle of a run every call says so, and a new device works") {
  Device device = open_device();
  const Kernel chain = prepare(device, kCheckChain);
  const Buffer x = make_buffer(device, "x", 256);
  const Buffer y = make_buffer(device, "y", 256);
  const BindGroup group = bind(device, chain, {{&x}, {&y}});
  Step step;
  must(step.dispatch(chain, group, CheckChainParams{.n = 64, .add = 1}, {1}));
  must(device.submit(step));
  auto reading = started(device.read(y, 0, 256));
  auto finishing = started(device.finished());
  auto preparing = device.prepare({{&kCheckRmsNorm}});
  device.lose_for_test("pulled out");

  const auto lost = [](const auto& outcome, Where where = Where::current()) {
    expect_error(outcome, ErrorCode::device_lost, {"(pulled out)", "make a new device"}, where);
  };
  const auto lost_later = [](auto outcome, Where where = Where::current()) {
    expect_error(std::move(outcome), ErrorCode::device_lost, {"(pulled out)"}, where);
  };
  lost_later(std::move(reading));
  lost_later(std::move(finishing));
  lost_later(std::move(preparing));
  for (int again = 0; again < 2; ++again) {
    const ReadRange range{&y, 0, 256};
    const std::vector<std::byte> bytes(4);
    lost(device.check());
    lost(device.create_buffer("z", 16, MemoryKind::other));
    lost(device.write(x, 0, bytes));
    lost(device.bind(chain, std::vector<Binding>{{&x}, {&y}}));
    lost(device.submit(step));
    lost_later(device.submit_and_read(&step, std::span(&range, 1)));
    lost_later(device.read(y, 0, 256));
    lost_later(device.finished());
    lost_later(device.prepare({{&kCheckChain}}));  // compiled before, and of no use now
    lost_later(device.prepare({{&kCheckAdd}}));
    lost_later(self_check(device));
    if (device.features().contains(Feature::timestamps)) {
      lost_later(device.submit_profiled(step));
    }
  }
  Device fresh = open_device();
  check_workload(fresh);
}

}  // namespace
}  // namespace ptero::gpu
