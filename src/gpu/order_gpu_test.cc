// SPDX-License-Identifier: BSD-3-Clause
// Dispatches of a step run in the order recorded, each seeing what the ones before it wrote.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "gpu/selfcheck/check_add.wgsl.h"
#include "gpu/selfcheck/check_rms_norm.wgsl.h"
#include "gpu/testing/test_device.h"

namespace ptero::gpu {
namespace {

using namespace testing;
using namespace wgsl;

struct Variant {
  std::string_view name;
  DeviceOptions options;
};

// The order has to hold on every kind of device that Ptero makes.
std::vector<Variant> variants() {
  std::vector<Variant> list(4);
  list[0].name = "everything on";
  list[1].name = "parameters through uniforms";
  list[1].options.disabled = {Feature::immediates};
  list[2].name = "bindings of at most 64 KiB, grids of at most 16 a dimension";
  list[2].options.caps.max_storage_binding_size = 64 << 10;
  list[2].options.caps.max_workgroups_per_dimension = 16;
  list[3].name = "bounds checks off";
  list[3].options.robustness = false;
  return list;
}

// Sums of these are exact in float32, so that equality can be asked for.
double input(size_t i) {
  return static_cast<double>(i % 113) / 16;
}
double addend(size_t which, size_t i) {
  return (static_cast<double>((i + 5 * which) % 9) - 3) / 8;
}
constexpr size_t kAddends = 3;

template <typename Function>
Buffer upload_floats(Device& device, std::string label, size_t count, Function value) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(value(i));
  }
  return upload(device, std::move(label), values);
}

struct Chain {
  std::vector<Buffer> values;  // link k reads values[k] and writes values[k + 1]
  std::vector<Buffer> addends;
  Step step;
};

// values[1] = values[0] + values[0], then values[k + 1] = values[k] + an addend. Every link has its
// own output, zero before the first run, so that running backwards shows for any length above 1.
// Rows longer than a binding may be are worked off in slices.
Chain record_add_chain(Device& device, size_t links, size_t count) {
  Chain chain;
  const Kernel add = prepare(device, kCheckAdd);
  chain.values.push_back(upload_floats(device, "value 0", count, input));
  for (size_t which = 0; which < kAddends; ++which) {
    chain.addends.push_back(upload_floats(device, fmt::format("addend {}", which), count,
                                          [which](size_t i) { return addend(which, i); }));
  }
  for (size_t link = 0; link < links; ++link) {
    chain.values.push_back(make_buffer(device, fmt::format("value {}", link + 1), count * 4));
  }
  const size_t slice = std::min<uint64_t>(count, device.limits().max_storage_binding_size / 4);
  for (size_t link = 0; link < links; ++link) {
    const Buffer& left = chain.values[link];
    const Buffer& right = link == 0 ? left : chain.addends[link % kAddends];
    for (size_t from = 0; from < count; from += slice) {
      const uint32_t n = static_cast<uint32_t>(std::min(slice, count - from));
      const BindGroup group = bind(device, add,
                                   {{&left, from * 4, n * 4},
                                    {&right, from * 4, n * 4},
                                    {&chain.values[link + 1], from * 4, n * 4}});
      must(chain.step.dispatch(add, group, CheckAddParams{.n = n}, grid_for(device.limits(), n)));
    }
  }
  return chain;
}

std::vector<double> add_chain_golden(size_t links, size_t count) {
  std::vector<double> want(count);
  for (size_t i = 0; i < count; ++i) {
    want[i] = input(i) + input(i);
    for (size_t link = 1; link < links; ++link) {
      want[i] += addend(link % kAddends, i);
    }
  }
  return want;
}

std::vector<std::byte> run(Device& device, const Step& step, const Buffer& output) {
  const ReadRange range{&output, 0, output.size()};
  return must(device.submit_and_read(&step, std::span(&range, 1))).front();
}

bool near_golden(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(got[i] - want[i]) <= tolerance)) {
      return false;
    }
  }
  return true;
}

void check_add_chain(Device& device, size_t links, size_t count) {
  CAPTURE(links);
  const Chain chain = record_add_chain(device, links, count);
  const std::vector<double> want = add_chain_golden(links, count);
  const DeviceStats before = device.stats();
  const std::vector<std::byte> bytes = run(device, chain.step, chain.values.back());
  check_near(values_of<float>(bytes), want, 0);
  CHECK(device.stats().passes - before.passes == 1);
  CHECK(device.stats().dispatches - before.dispatches == chain.step.size());
  CHECK(device.stats().submits - before.submits == 1);
  for (int repeat = 0; repeat < 2; ++repeat) {
    CHECK(run(device, chain.step, chain.values.back()) == bytes);
  }

  Chain reversed = record_add_chain(device, links, count);
  reversed.step.reverse_for_test();
  const std::vector<std::byte> backwards = run(device, reversed.step, reversed.values.back());
  if (links > 1) {
    CHECK_FALSE(near_golden(values_of<float>(backwards), want, 0));
  } else {
    CHECK(backwards == bytes);
  }
}

TEST_CASE("order: add chains of 1, 3, 8, 32 and 1,000 dispatches, in one pass each") {
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    Device device = open_device(variant.options);
    for (const size_t links : {1, 3, 8, 32, 1000}) {
      check_add_chain(device, links, 300);
    }
  }
}

TEST_CASE("order: a chain too wide for one dimension of the grid is folded over y") {
  Device device = open_device();
  const size_t count = 64 * size_t{device.limits().max_workgroups_per_dimension} + 77'777;
  REQUIRE(grid_for(device.limits(), count).y > 1);
  check_add_chain(device, 3, count);
}

TEST_CASE("order: under the cap of 64 KiB a wide chain runs in slices of its buffers") {
  Device device = open_device(variants()[2].options);
  REQUIRE(device.limits().max_storage_binding_size == 64 << 10);
  const Kernel add = prepare(device, kCheckAdd);
  const Buffer big = make_buffer(device, "big", (64 << 10) + 4);
  const Buffer small = make_buffer(device, "small", 64 << 10);
  expect_error(device.bind(add, std::vector<Binding>{{&big}, {&small}, {&small}}),
               ErrorCode::unsupported,
               {"(65540 bytes)", "binding (a)", "(check_add)", "(65536 bytes)"});
  check_add_chain(device, 3, 50'001);  // four slices, the last one short
}

// Four times: x = x + rms_norm(x).
constexpr uint32_t kRows = 7;
constexpr uint32_t kWidth = 193;
constexpr size_t kLayers = 4;
constexpr float kEps = 1e-5f;

struct NormChain {
  std::vector<Buffer> x;
  std::vector<Buffer> norm;
  Step step;
};

NormChain record_norm_chain(Device& device) {
  NormChain chain;
  const std::vector<Kernel> kernels = must(device.prepare({{&kCheckRmsNorm}, {&kCheckAdd}}));
  const uint32_t count = kRows * kWidth;
  chain.x.push_back(upload_floats(
      device, "x 0", count, [](size_t i) { return std::sin(0.37 * static_cast<double>(i)); }));
  for (size_t layer = 0; layer < kLayers; ++layer) {
    chain.norm.push_back(make_buffer(device, "norm", count * 4));
    chain.x.push_back(make_buffer(device, "x", count * 4));
  }
  for (size_t layer = 0; layer < kLayers; ++layer) {
    const Buffer& x = chain.x[layer];
    const Buffer& norm = chain.norm[layer];
    must(chain.step.dispatch(kernels[0], bind(device, kernels[0], {{&x}, {&norm}}),
                             CheckRmsNormParams{.width = kWidth, .eps = kEps}, {kRows}));
    must(chain.step.dispatch(kernels[1],
                             bind(device, kernels[1], {{&norm}, {&x}, {&chain.x[layer + 1]}}),
                             CheckAddParams{.n = count}, grid_for(device.limits(), count)));
  }
  return chain;
}

std::vector<double> norm_chain_golden() {
  std::vector<double> x(kRows * kWidth);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)));
  }
  for (size_t layer = 0; layer < kLayers; ++layer) {
    for (size_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (size_t i = row * kWidth; i < (row + 1) * kWidth; ++i) {
        sum += x[i] * x[i];
      }
      const double scale = 1 / std::sqrt(sum / kWidth + kEps);
      for (size_t i = row * kWidth; i < (row + 1) * kWidth; ++i) {
        x[i] += x[i] * scale;
      }
    }
  }
  return x;
}

TEST_CASE("order: rms_norm and add alternate") {
  constexpr double kTolerance = 1e-5;
  for (const Variant& variant : variants()) {
    CAPTURE(variant.name);
    Device device = open_device(variant.options);
    const NormChain chain = record_norm_chain(device);
    const uint64_t passes = device.stats().passes;
    const std::vector<std::byte> bytes = run(device, chain.step, chain.x.back());
    CHECK(device.stats().passes - passes == 1);
    check_near(values_of<float>(bytes), norm_chain_golden(), kTolerance);
    CHECK(run(device, chain.step, chain.x.back()) == bytes);

    NormChain reversed = record_norm_chain(device);
    reversed.step.reverse_for_test();
    CHECK_FALSE(near_golden(values_of<float>(run(device, reversed.step, reversed.x.back())),
                            norm_chain_golden(), kTolerance));
  }
}

TEST_CASE("order: copies end the pass, keep their place, and nothing else ends it") {
  Device device = open_device();
  const uint32_t n = 100;
  const Kernel add = prepare(device, kCheckAdd);
  const Buffer a = upload_floats(device, "a", n, input);
  const Buffer c = upload_floats(device, "c", n, [](size_t i) { return addend(1, i); });
  std::vector<Buffer> made;
  made.reserve(6);
  const auto make = [&](std::string label) {
    made.push_back(make_buffer(device, std::move(label), n * 4));
    return &made.back();
  };
  const Buffer *b = make("b"), *d = make("d"), *e = make("e"), *f = make("f"), *g = make("g"),
               *h = make("h");
  Step step;
  const auto record_add = [&](const Buffer& left, const Buffer& right, const Buffer& out) {
    must(step.dispatch(add, bind(device, add, {{&left}, {&right}, {&out}}), CheckAddParams{.n = n},
                       grid_for(device.limits(), n)));
  };
  record_add(a, c, *b);                  // b = a + c
  must(step.copy(*b, 0, *d, 0, n * 4));  // d = a + c
  record_add(c, c, *b);                  // b = 2c
  record_add(*b, *d, *e);                // e = a + 3c
  must(step.copy(*e, 0, *f, 0, n * 4));
  must(step.copy(*b, 0, *g, 0, n * 4));  // g = 2c
  record_add(*f, *g, *h);                // h = a + 5c
  std::vector<double> want(n);
  for (size_t i = 0; i < n; ++i) {
    want[i] = input(i) + 5 * addend(1, i);
  }
  const DeviceStats before = device.stats();
  check_near(values_of<float>(run(device, step, *h)), want, 0);
  CHECK(device.stats().passes - before.passes == 3);
  CHECK(device.stats().copies - before.copies == 3);
  CHECK(device.stats().dispatches - before.dispatches == 4);

  step.clear();
  CHECK(step.size() == 0);
  must(step.copy(a, 0, *h, 0, n * 4));
  CHECK(run(device, step, *h) == must(device.read(a, 0, n * 4)).front());
  CHECK(device.stats().passes - before.passes == 3);  // a copy alone needs none
}

}  // namespace
}  // namespace ptero::gpu
