// SPDX-License-Identifier: BSD-3-Clause
// Devices: two at a time, one after another, and what outlives their handles.
#include <thread>

#include <doctest/doctest.h>

#include "gpu/scratch.h"
#include "gpu/selfcheck/check_chain.wgsl.h"
#include "gpu/testing/in_place.wgsl.h"
#include "gpu/testing/test_device.h"

namespace ptero::gpu {
namespace {

using namespace testing;
using namespace wgsl;

void check_workload(Device& device, Where where = Where::current()) {
  check_near(must(run_workload(device), where), workload_golden(), 0, where);
}

// y = y / 2 + add, in place.
struct Halver {
  Device device;
  Buffer y;
  Step step;

  Halver(float start, float add) : device(open_device()) {
    y = upload(device, "y", std::vector<float>(64, start));
    const Kernel kernel = prepare(device, kInPlace);
    must(step.dispatch(kernel, bind(device, kernel, {{&y}}), InPlaceParams{.n = 64, .add = add},
                       {1}));
  }
};

TEST_CASE("devices: two at once, interleaved, each with its own buffers and counters") {
  Halver a(0, 1);
  Halver b(8, -1);
  const uint64_t a_submits = a.device.stats().submits;
  double a_want = 0;
  double b_want = 8;
  for (int i = 0; i < 10; ++i) {
    must(a.device.submit(a.step));
    must(b.device.submit(b.step));
    must(b.device.submit(b.step));
    a_want = a_want / 2 + 1;
    b_want = (b_want / 2 - 1) / 2 - 1;
  }
  auto a_reading = started(a.device.read(a.y, 0, 256));
  auto b_reading = started(b.device.read(b.y, 0, 256));
  check_near(values_of<float>(must(std::move(b_reading)).front()), std::vector<double>(64, b_want),
             1e-6);
  check_near(values_of<float>(must(std::move(a_reading)).front()), std::vector<double>(64, a_want),
             1e-6);
  CHECK(a.device.stats().dispatches == 10);
  CHECK(b.device.stats().dispatches == 20);
  CHECK(a.device.stats().submits == a_submits + 11);
  CHECK(b.device.stats().pipelines_created == 1);

  // An error and a loss stay with their device.
  b.device.lose_for_test("test");
  CHECK_FALSE(b.device.check().ok());
  CHECK(a.device.check().ok());
  check_workload(a.device);
}

TEST_CASE("devices: what belongs to another one is refused") {
  Halver a(0, 1);
  Halver b(8, -1);
  const Kernel kernel = prepare(a.device, kInPlace);
  const auto refused = [](const auto& outcome, Where where = Where::current()) {
    expect_error(outcome, ErrorCode::invalid_argument, {"belongs to another device"}, where);
  };
  refused(a.device.bind(kernel, std::vector<Binding>{{&b.y}}));
  refused(a.device.write(b.y, 0, std::vector<std::byte>(4)));
  refused(wait_for(a.device.read(b.y, 0, 4)));
  refused(a.device.submit(b.step));
  const Buffer target = make_buffer(a.device, "target", 256);
  const Buffer b_target = make_buffer(b.device, "target", 256);
  Step copy;
  refused(copy.copy(b.y, 0, target, 0, 256));
  must(copy.copy(b.y, 0, b_target, 0, 256));
  refused(copy.copy(a.y, 0, target, 0, 256));
  refused(a.device.submit(copy));
  // A kernel of one device with the bindings of another.
  const BindGroup group = bind(b.device, prepare(b.device, kInPlace), {{&b.y}});
  Step mixed;
  refused(mixed.dispatch(kernel, group, InPlaceParams{.n = 64, .add = 0}, {1}));
  const BindGroup own = bind(a.device, kernel, {{&a.y}});
  refused(b.step.dispatch(kernel, own, InPlaceParams{.n = 64, .add = 0}, {1}));
  refused(b.device.bind(kernel, std::vector<Binding>{{&b.y}}));
  check_workload(a.device);
  check_workload(b.device);
}

TEST_CASE("devices: create, release, create") {
  for (int i = 0; i < 3; ++i) {
    Device device = open_device();
    CHECK(device.stats().buffers_created == 0);
    check_workload(device);
  }
}

TEST_CASE("devices: what was made from one keeps it alive") {
  std::unique_ptr<Pending<ReadData>> reading;
  std::unique_ptr<ScratchOwner> owner;
  Buffer kept;
  {
    Device device = open_device();
    kept = upload(device, "kept", std::vector<uint32_t>{1, 2, 3, 4});
    owner = std::make_unique<ScratchOwner>(device);
    must(owner->create_scratch_buffer("scratch", 64));
    reading = started(device.read(kept, 4, 8));
  }
  kept = Buffer();
  CHECK(values_of<uint32_t>(must(std::move(reading)).front()) == std::vector<uint32_t>{2, 3});
  must(owner->create_scratch_buffer("more scratch", 64));
}

TEST_CASE("devices: an abandoned request for one does no harm") {
  {
    const auto opening = Device::open(test_adapter(), {});
  }
  Device device = open_device();
  check_workload(device);
}

TEST_CASE("devices: 1,000 of them, one after another") {
  for (uint32_t i = 0; i < 1000; ++i) {
    Device device = open_device();
    const Buffer buffer = upload(device, "value", std::vector<uint32_t>{i});
    if (download<uint32_t>(device, buffer) != std::vector<uint32_t>{i}) {
      FAIL("device " << i << " reads something else than it wrote");
    }
  }
}

TEST_CASE("devices: two threads, each with an instance of its own") {
  std::string failures[2];
  std::vector<std::thread> threads;
  const std::string wanted = test_adapter().info().name;
  for (std::string& failure : failures) {
    threads.emplace_back([&failure, &wanted] {
      const auto run = [&]() -> Status {
        PTERO_ASSIGN_OR_RETURN(const Instance instance, Instance::create());
        PTERO_ASSIGN_OR_RETURN(const auto adapters, list_adapters(instance));
        PTERO_ASSIGN_OR_RETURN(const Adapter adapter, choose_adapter(adapters, wanted));
        PTERO_ASSIGN_OR_RETURN(Device device, wait_for(Device::open(adapter, {})));
        for (int i = 0; i < 20; ++i) {
          PTERO_ASSIGN_OR_RETURN(const std::vector<float> values, run_workload(device));
          const std::vector<double> want = workload_golden();
          PTERO_REJECT_IF(!std::equal(values.begin(), values.end(), want.begin(), want.end()),
                          internal, "Values differ in turn {}.", i);
        }
        return ok_status();
      };
      if (const Status status = run(); !status.ok()) {
        failure = status.error().to_string();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(failures[0] == "");
  CHECK(failures[1] == "");
}

}  // namespace
}  // namespace ptero::gpu
