// SPDX-License-Identifier: BSD-3-Clause
// The optional features: what each test adapter has, every off-switch, both ways of handing
// parameters to a kernel, and profiling.
#include <chrono>

#include <doctest/doctest.h>

#include "gpu/pass_times.h"
#include "gpu/selfcheck/check_add.wgsl.h"
#include "gpu/selfcheck/selfcheck.h"
#include "gpu/testing/in_place.wgsl.h"
#include "gpu/testing/test_device.h"
#include "gpu/testing/wide_params.wgsl.h"

namespace ptero::gpu {
namespace {

using namespace testing;
using namespace wgsl;

Device open_without(FeatureSet disabled) {
  DeviceOptions options;
  options.disabled = disabled;
  return open_device(options);
}

uint64_t pipelines_with(const Device& device, Feature feature) {
  return device.stats().pipelines_by_feature[static_cast<size_t>(feature)];
}

const CheckResult& find(const SelfCheckReport& report, std::string_view name) {
  for (const CheckResult& check : report.checks) {
    if (check.name == name) {
      return check;
    }
  }
  FAIL("no such check");
  return report.checks.front();
}

TEST_CASE("features: each test adapter has what it is there for") {
  const AdapterInfo& info = test_adapter().info();
  CHECK(info.limits.min_storage_offset_alignment > 0);
  CHECK(info.limits.max_storage_buffers_per_stage >= 8);
  if (on_lavapipe()) {
    CHECK(info.features == FeatureSet::all());
    CHECK(info.is_software());
    CHECK(info.subgroup_min_size == 8);
    CHECK(info.subgroup_max_size == 8);
    CHECK_FALSE(info.matrix_shapes.empty());
  }
  if (on_swiftshader()) {
    CHECK_FALSE(info.features.contains(Feature::shader_f16));
    CHECK_FALSE(info.features.contains(Feature::subgroup_matrix));
    CHECK(info.features.contains(Feature::subgroups));
    CHECK(info.subgroup_min_size == 4);
    CHECK(info.subgroup_max_size == 4);
    CHECK(info.matrix_shapes.empty());
  }
  const Device device = open_device();
  CHECK(device.features() == info.features);
}

TEST_CASE("features: a device with everything on uses everything, and the self-check passes") {
  Device device = open_device();
  const SelfCheckReport report = must(self_check(device));
  for (const CheckResult& check : report.checks) {
    CAPTURE(check.name);
    CAPTURE(check.detail);
    CHECK(check.outcome != CheckOutcome::failed);
    if (on_lavapipe()) {
      CHECK(check.outcome == CheckOutcome::passed);
    }
  }
  CHECK(report.checks.size() == 7);
  for (const Feature feature : FeatureSet::all()) {
    CAPTURE(feature_name(feature));
    // Timestamps belong to passes, not to pipelines.
    const bool used = device.features().contains(feature) && feature != Feature::timestamps;
    CHECK((pipelines_with(device, feature) > 0) == used);
  }
}

TEST_CASE("features: with each off in turn nothing uses it, and the self-check passes") {
  constexpr std::string_view kChecks[kFeatureCount] = {
      "half precision", "subgroup reductions", "matrix units", "packed dot products", "", ""};
  for (const Feature feature : FeatureSet::all()) {
    CAPTURE(feature_name(feature));
    Device device = open_without({feature});
    CHECK_FALSE(device.features().contains(feature));
    FeatureSet left = test_adapter().info().features;
    left.erase(feature);
    if (feature == Feature::subgroups) {
      left.erase(Feature::subgroup_matrix);  // of no use without
    }
    CHECK(device.features() == left);
    const SelfCheckReport report = must(self_check(device));
    CHECK(report.passed());
    CHECK(pipelines_with(device, feature) == 0);
    for (const Feature other : left) {
      CAPTURE(feature_name(other));
      const bool needs_more = other == Feature::subgroup_matrix && feature == Feature::shader_f16;
      CHECK((pipelines_with(device, other) > 0) == (other != Feature::timestamps && !needs_more));
    }
    if (const std::string_view name = kChecks[static_cast<size_t>(feature)]; !name.empty()) {
      const CheckResult& check = find(report, name);
      CHECK(check.outcome == CheckOutcome::not_offered);
      CHECK(check.detail.find("is not available") != std::string::npos);
      if (test_adapter().info().features == FeatureSet::all()) {  // nothing else is missing
        CHECK(check.detail.find(feature_name(feature)) == 0);
      }
    }
    expect_error(device.prepare({{&kInPlace, {}, {}, {feature}}}), ErrorCode::unsupported,
                 {"(in_place)", feature_name(feature), "switched on"});
  }
}

TEST_CASE("features: with all off a plain device remains, and the self-check passes") {
  Device device = open_without(FeatureSet::all());
  CHECK(device.features().empty());
  CHECK(device.limits().max_immediate_size == 0);
  CHECK(must(self_check(device)).passed());
  check_near(must(run_workload(device)), workload_golden(), 0);
}

TEST_CASE("features: without bounds checks the self-check passes") {
  DeviceOptions options;
  options.robustness = false;
  Device device = open_device(options);
  CHECK(must(self_check(device)).passed());
}

// y = y / 2 + add with another `add` in every dispatch: the result tells which parameters met which
// dispatch, and in which order.
constexpr uint32_t kCount = 64;
constexpr int kDispatches = 200;  // more than the ring holds at first
constexpr int kSteps = 6;

float add_of(int step, int dispatch) {
  return static_cast<float>((step * 7 + dispatch) % 11);
}

std::vector<float> run_with_changing_params(Device& device) {
  const Kernel kernel = prepare(device, kInPlace);
  const Buffer y = upload(device, "y", std::vector<float>(kCount, 3));
  const BindGroup group = bind(device, kernel, {{&y}});
  Step small;
  Step large;
  for (int i = 0; i < kDispatches; ++i) {
    if (i < 3) {
      must(small.dispatch(kernel, group, InPlaceParams{.n = kCount, .add = 0}, {1}));
    }
    must(large.dispatch(kernel, group, InPlaceParams{.n = kCount, .add = 0}, {1}));
  }
  // Submitted back to back, without waiting: what is written for one must not reach another.
  for (int step = 0; step < kSteps; ++step) {
    Step& chosen = step % 2 == 0 ? small : large;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const InPlaceParams params{.n = kCount, .add = add_of(step, static_cast<int>(i))};
      must(chosen.set_params(i, std::as_bytes(std::span(&params, 1))));
    }
    must(device.submit(chosen));
  }
  return download<float>(device, y);
}

std::vector<double> changing_params_golden() {
  double y = 3;
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < (step % 2 == 0 ? 3 : kDispatches); ++i) {
      y = y / 2 + add_of(step, i);
    }
  }
  return std::vector<double>(kCount, y);
}

TEST_CASE("parameters: immediates and the uniform ring give the same bytes") {
  Device with = open_device();
  Device without = open_without({Feature::immediates});
  REQUIRE(with.features().contains(Feature::immediates));
  const std::vector<float> through_immediates = run_with_changing_params(with);
  const std::vector<float> through_uniforms = run_with_changing_params(without);
  check_near(through_immediates, changing_params_golden(), 1e-6);
  CHECK(through_uniforms == through_immediates);
  const auto uniform_bytes = [](const Device& device) {
    return device.stats().bytes_by_kind[static_cast<size_t>(MemoryKind::uniforms)];
  };
  CHECK(uniform_bytes(with) == 0);
  CHECK(uniform_bytes(without) >= kDispatches * 256);
  CHECK(pipelines_with(with, Feature::immediates) == 1);
  CHECK(pipelines_with(without, Feature::immediates) == 0);
}

TEST_CASE("parameters: more than 64 bytes go through uniforms by themselves") {
  Device device = open_device();
  const std::vector<Kernel> kernels = must(device.prepare({{&kWideParams}, {&kInPlace}}));
  CHECK(kernels[0].params_size() == 96);
  CHECK(pipelines_with(device, Feature::immediates) == 1);  // in_place alone
  const Buffer y = make_buffer(device, "y", 16);
  const BindGroup wide = bind(device, kernels[0], {{&y}});
  const BindGroup in_place = bind(device, kernels[1], {{&y}});
  Step step;  // both ways in one pass
  const WideParamsParams params{.a = {1, 2, 3, 4},
                                .b = {10, 20, 30, 40},
                                .c = {100, 200, 300, 400},
                                .d = {0.5f, 0, 0, 0},
                                .e = {0, 0, 0, -1},
                                .f = {1000, 1000, 1000, 1000}};
  must(step.dispatch(kernels[1], in_place, InPlaceParams{.n = 4, .add = 77}, {1}));
  must(step.dispatch(kernels[0], wide, params, {1}));
  must(step.dispatch(kernels[1], in_place, InPlaceParams{.n = 4, .add = 1}, {1}));
  must(device.submit(step));
  check_near(download<float>(device, y), {556.75, 612, 667.5, 722.5}, 0);
}

TEST_CASE("pipelines: equal keys share one, kept in the cache") {
  Device device = open_device();
  const std::vector<Kernel> kernels = must(
      device.prepare({{&kInPlace}, {&kInPlace}, {&kCheckAdd}, {&kInPlace, "const unused = 1;\n"}}));
  CHECK(kernels[0] == kernels[1]);
  CHECK(kernels[0] != kernels[3]);
  CHECK(kernels[2].name() == "check_add");
  CHECK(device.stats().pipelines_created == 3);
  CHECK(prepare(device, kInPlace) == kernels[0]);
  CHECK(device.stats().pipelines_created == 3);
}

// Adds that take the GPU long enough to be seen.
struct Profiled {
  static constexpr uint32_t kElements = 1 << 20;
  Buffer x;
  Buffer y;
  Step step;
};

Profiled record_profiled(Device& device, size_t dispatches) {
  Profiled job{upload(device, "x", std::vector<float>(Profiled::kElements, 1.5f)),
               make_buffer(device, "y", Profiled::kElements * 4), Step()};
  const Kernel add = prepare(device, kCheckAdd);
  const Kernel in_place = prepare(device, kInPlace);
  const BindGroup add_group = bind(device, add, {{&job.x}, {&job.x}, {&job.y}});
  const BindGroup in_place_group = bind(device, in_place, {{&job.y}});
  const uint32_t n = Profiled::kElements;
  for (size_t i = 0; i < dispatches; ++i) {
    if (i % 2 == 0) {
      must(job.step.dispatch(add, add_group, CheckAddParams{.n = n}, grid_for(device.limits(), n)));
    } else {
      must(job.step.dispatch(in_place, in_place_group, InPlaceParams{.n = n, .add = 2},
                             grid_for(device.limits(), n)));
    }
  }
  return job;
}

TEST_CASE("profiling: one entry a dispatch, with a time, and the same results") {
  Device device = open_device();
  const Profiled plain = record_profiled(device, 6);
  must(device.submit(plain.step));
  const std::vector<float> want = download<float>(device, plain.y);
  CHECK(want == std::vector<float>(Profiled::kElements, 3.5f));

  const Profiled job = record_profiled(device, 6);
  const uint64_t passes = device.stats().passes;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<KernelTime> times = must(device.submit_profiled(job.step));
  const auto wall = std::chrono::steady_clock::now() - start;
  CHECK(device.stats().passes - passes == 6);
  CHECK(download<float>(device, job.y) == want);
  REQUIRE(times.size() == 6);
  uint64_t sum = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    CHECK(times[i].kernel == (i % 2 == 0 ? "check_add" : "in_place"));
    CHECK(times[i].nanoseconds > 1'000);  // a million elements
    sum += times[i].nanoseconds;
  }
  CHECK(sum <= static_cast<uint64_t>(std::chrono::nanoseconds(wall).count()));
}

TEST_CASE("profiling: copies have no entry, empty grids do, long steps take several query sets") {
  Device device = open_device();
  const Kernel kernel = prepare(device, kInPlace);
  const Buffer y = upload(device, "y", std::vector<float>(64, 0));
  const Buffer copied = make_buffer(device, "copied", 256);
  const BindGroup group = bind(device, kernel, {{&y}});
  Step step;
  constexpr size_t kMany = 2050;
  for (size_t i = 0; i < kMany; ++i) {
    const Grid grid{i == 5 ? 0u : 1u};
    must(step.dispatch(kernel, group, InPlaceParams{.n = 64, .add = 1}, grid));
    if (i % 1000 == 0) {
      must(step.copy(y, 0, copied, 0, 256));
    }
  }
  const std::vector<KernelTime> times = must(device.submit_profiled(step));
  CHECK(times.size() == kMany);
  check_near(download<float>(device, y), std::vector<double>(64, 2), 0);

  Step copies;
  must(copies.copy(y, 0, copied, 0, 256));
  expect_error(device.submit_profiled(copies), ErrorCode::invalid_argument, {"without dispatches"});
}

TEST_CASE("pass times: every pass in order, nothing else, and kernels where they are profiled") {
  Device device = open_device();
  const Profiled job = record_profiled(device, 6);
  must(device.submit(job.step));  // not yet timed
  must(start_pass_times(device));
  const auto start = std::chrono::steady_clock::now();
  must(device.submit(job.step));
  must(device.submit_profiled(job.step));
  must(device.submit(job.step));
  const std::vector<PassTime> times = must(take_pass_times(device));
  const auto wall = std::chrono::steady_clock::now() - start;
  must(device.submit(job.step));  // no longer
  REQUIRE(times.size() == 6 + 2);
  uint64_t sum = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    CHECK(times[i].end - times[i].begin > 1'000);
    CHECK(times[i].kernel == (i >= 6 ? "" : i % 2 == 0 ? "check_add" : "in_place"));
    sum += times[i].end - times[i].begin;
  }
  CHECK(sum <= static_cast<uint64_t>(std::chrono::nanoseconds(wall).count()));
  CHECK(times[6].end <= times[0].begin);
  CHECK(times[5].end <= times[7].begin);
  expect_error(take_pass_times(device), ErrorCode::invalid_argument, {"No pass"});
  must(start_pass_times(device));
  CHECK(must(take_pass_times(device)).empty());
}

TEST_CASE("pass times: more than a query set holds") {
  Device device = open_device();
  const Kernel kernel = prepare(device, kInPlace);
  const Buffer y = upload(device, "y", std::vector<float>(64, 0));
  const Buffer copied = make_buffer(device, "copied", 256);
  const BindGroup group = bind(device, kernel, {{&y}});
  Step step;  // each copy ends a pass
  for (size_t i = 0; i < 1030; ++i) {
    must(step.dispatch(kernel, group, InPlaceParams{.n = 64, .add = 1}, {1}));
    must(step.copy(y, 0, copied, 0, 256));
  }
  must(start_pass_times(device));
  must(device.submit(step));
  must(device.submit(step));
  const std::vector<PassTime> times = must(take_pass_times(device));
  REQUIRE(times.size() == 2060);
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i].begin < times[i - 1].begin) {
      FAIL("Pass " << i << " begins before the one before.");
    }
  }
}

TEST_CASE("profiling: without timestamps it is unsupported") {
  Device device = open_without({Feature::timestamps});
  const Profiled job = record_profiled(device, 1);
  expect_error(device.submit_profiled(job.step), ErrorCode::unsupported, {"timestamps"});
  expect_error(start_pass_times(device), ErrorCode::unsupported, {"timestamps"});
  must(device.submit(job.step));
  must(device.finished());
}

TEST_CASE("step: an empty grid does nothing, and grids can be changed") {
  Device device = open_device();
  const Kernel kernel = prepare(device, kInPlace);
  const Buffer y = upload(device, "y", std::vector<float>(128, 4));
  const BindGroup group = bind(device, kernel, {{&y}});
  Step step;
  const size_t index = must(step.dispatch(kernel, group, InPlaceParams{.n = 128, .add = 1}, {0}));
  must(device.submit(step));
  CHECK(device.stats().dispatches == 0);
  CHECK(device.stats().passes == 0);
  must(step.set_grid(index, {1}));
  must(device.submit(step));
  std::vector<double> want(128, 4);
  std::fill(want.begin(), want.begin() + 64, 3);
  check_near(download<float>(device, y), want, 0);
  must(step.set_grid(index, {2, 0, 1}));
  must(device.submit(step));
  check_near(download<float>(device, y), want, 0);
  CHECK(device.stats().dispatches == 1);
}

}  // namespace
}  // namespace ptero::gpu
