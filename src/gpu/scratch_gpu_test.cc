// SPDX-License-Identifier: BSD-3-Clause
// Scratch buffers, in tiers from the simplest property to the hardest. All tiers run and report
// even when an earlier one fails, so that one run shows where it starts to go wrong.
#include <cstdio>
#include <functional>
#include <numeric>

#include <doctest/doctest.h>
#include <unistd.h>

#include "gpu/scratch.h"
#include "gpu/selfcheck/check_add.wgsl.h"
#include "gpu/testing/test_device.h"

namespace ptero::gpu {
namespace {

using namespace testing;
using namespace wgsl;

// A tier returns what is wrong; it has no assertion that would end the test case.
struct Tier {
  std::string_view name;
  std::function<Status(Device&)> run;
};
struct TierReport {
  std::string_view name;
  Status status;
};

std::vector<TierReport> run_tiers(Device& device, const std::vector<Tier>& tiers) {
  std::vector<TierReport> reports;
  for (const Tier& tier : tiers) {
    reports.push_back({tier.name, tier.run(device)});
  }
  return reports;
}

std::string describe(const std::vector<TierReport>& reports) {
  std::string text;
  for (const TierReport& report : reports) {
    text += fmt::format("scratch tier \"{}\": {}\n", report.name,
                        report.status.ok() ? "passed" : report.status.error().to_string());
  }
  return text;
}

Result<std::vector<uint32_t>> read_words(Device& device, const Buffer& buffer) {
  PTERO_ASSIGN_OR_RETURN(const ReadData data, wait_for(device.read(buffer, 0, buffer.size())));
  return values_of<uint32_t>(data.front());
}

Status check_allocation(Device& device) {
  const DeviceStats before = device.stats();
  uint64_t bytes = 0;
  {
    ScratchOwner owner(device);
    std::vector<const Buffer*> buffers;
    for (const uint64_t size : {1u, 3u, 4u, 5u, 256u, 4100u, 1u << 20}) {
      PTERO_ASSIGN_OR_RETURN(const Buffer* buffer, owner.create_scratch_buffer("scratch", size));
      buffers.push_back(buffer);
      bytes += size;
      PTERO_REJECT_IF(!buffer->valid() || buffer->size() != size ||
                          buffer->kind() != MemoryKind::scratch || buffer->label() != "scratch",
                      internal, "A scratch buffer of {} bytes says {} bytes of kind {}.", size,
                      buffer->size(), memory_kind_name(buffer->kind()));
    }
    const Result<const Buffer*> nothing = owner.create_scratch_buffer("nothing", 0);
    PTERO_REJECT_IF(nothing.ok(), internal, "A scratch buffer of 0 bytes is made.");
    PTERO_REJECT_IF(nothing.error().code() != ErrorCode::invalid_argument ||
                        nothing.error().message().find("(nothing)") == std::string::npos,
                    internal, "A scratch buffer of 0 bytes is refused with ({}).",
                    nothing.error().to_string());
    PTERO_REJECT_IF(owner.count() != buffers.size() || owner.bytes() != bytes, internal,
                    "The owner counts {} buffers of {} bytes, and not {} of {}.", owner.count(),
                    owner.bytes(), buffers.size(), bytes);
    const uint64_t live = device.stats().scratch_live - before.scratch_live;
    PTERO_REJECT_IF(live != buffers.size(), internal, "The device counts {} live and not {}.", live,
                    buffers.size());
    for (int i = 0; i < 500; ++i) {  // addresses survive growth
      PTERO_ASSIGN_OR_RETURN(const Buffer* more, owner.create_scratch_buffer("more", 16));
      PTERO_REJECT_IF(more->size() != 16, internal, "A buffer has the wrong size.");
    }
    PTERO_REJECT_IF(buffers.front()->size() != 1 || buffers.front()->label() != "scratch", internal,
                    "The first buffer moved when the owner grew.");
    PTERO_ASSIGN_OR_RETURN(const auto words, read_words(device, *buffers.back()));
    const uint32_t sum = std::accumulate(words.begin(), words.end(), 0u);
    PTERO_REJECT_IF(sum != 0, internal, "A new scratch buffer is not all zeros.");
  }
  PTERO_REJECT_IF(device.stats().scratch_live != before.scratch_live ||
                      device.stats().bytes_by_kind[size_t(MemoryKind::scratch)] !=
                          before.bytes_by_kind[size_t(MemoryKind::scratch)],
                  internal, "Scratch ({} buffers, {} bytes) outlives its owner.",
                  device.stats().scratch_live,
                  device.stats().bytes_by_kind[size_t(MemoryKind::scratch)]);
  return ok_status();
}

Status check_copy(Device& device) {
  ScratchOwner owner(device);
  constexpr uint32_t kWords = 1000;
  std::vector<uint32_t> values(kWords);
  std::iota(values.begin(), values.end(), 0x1234'5678u);
  PTERO_ASSIGN_OR_RETURN(const Buffer* a, owner.create_scratch_buffer("a", kWords * 4));
  PTERO_ASSIGN_OR_RETURN(const Buffer* b, owner.create_scratch_buffer("b", kWords * 4));
  PTERO_RETURN_IF_ERROR(device.write(*a, 0, std::as_bytes(std::span(values))));
  Step step;  // all of a, the last ten words of it first
  PTERO_RETURN_IF_ERROR(step.copy(*a, (kWords - 10) * 4, *b, 0, 40));
  PTERO_RETURN_IF_ERROR(step.copy(*a, 0, *b, 40, (kWords - 10) * 4));
  PTERO_RETURN_IF_ERROR(device.submit(step));
  PTERO_ASSIGN_OR_RETURN(const auto words, read_words(device, *b));
  for (uint32_t i = 0; i < kWords; ++i) {
    const uint32_t want = values[(i + kWords - 10) % kWords];
    PTERO_REJECT_IF(words[i] != want, internal, "Word {} is {:#x} and not {:#x}.", i, words[i],
                    want);
  }
  return ok_status();
}

// Writes x, adds it to itself into `first`, then in another submit that to itself into `second`:
// scratch is read and written by kernels and keeps its contents between steps.
Status check_compute(Device& device) {
  ScratchOwner owner(device);
  constexpr uint32_t kCount = 777;
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), -100.0f);
  PTERO_ASSIGN_OR_RETURN(const Buffer* x, owner.create_scratch_buffer("x", kCount * 4));
  PTERO_ASSIGN_OR_RETURN(const Buffer* first, owner.create_scratch_buffer("first", kCount * 4));
  PTERO_ASSIGN_OR_RETURN(const Buffer* second, owner.create_scratch_buffer("second", kCount * 4));
  PTERO_RETURN_IF_ERROR(device.write(*x, 0, std::as_bytes(std::span(values))));
  PTERO_ASSIGN_OR_RETURN(const auto kernels, wait_for(device.prepare({{&kCheckAdd}})));
  for (const auto& [in, out] : {std::pair(x, first), std::pair(first, second)}) {
    const Binding bindings[] = {{in}, {in}, {out}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup group, device.bind(kernels[0], bindings));
    Step step;
    PTERO_RETURN_IF_ERROR(step.dispatch(kernels[0], group, CheckAddParams{.n = kCount},
                                        grid_for(device.limits(), kCount)));
    PTERO_RETURN_IF_ERROR(device.submit(step));
  }
  PTERO_ASSIGN_OR_RETURN(const ReadData data, wait_for(device.read(*second, 0, kCount * 4)));
  const std::vector<float> got = values_of<float>(data.front());
  for (uint32_t i = 0; i < kCount; ++i) {
    PTERO_REJECT_IF(got[i] != 4 * values[i], internal, "Element {} is {} and not {}.", i, got[i],
                    4 * values[i]);
  }
  return ok_status();
}

// One owner with 256 buffers of mixed sizes, some of them used by a dispatch, and gone again.
Status live_and_die(Device& device, const Kernel& add) {
  constexpr size_t kBuffers = 256;
  {
    ScratchOwner owner(device);
    std::vector<const Buffer*> buffers;
    for (size_t i = 0; i < kBuffers; ++i) {
      PTERO_ASSIGN_OR_RETURN(const Buffer* buffer,
                             owner.create_scratch_buffer("stress", 256 + 64 * (i % 32)));
      buffers.push_back(buffer);
    }
    PTERO_REJECT_IF(device.stats().scratch_live != kBuffers, internal,
                    "Live scratch buffers ({}) are not {}.", device.stats().scratch_live, kBuffers);
    const Binding bindings[] = {{buffers[0]}, {buffers[100]}, {buffers[255]}};
    PTERO_ASSIGN_OR_RETURN(const BindGroup group, device.bind(add, bindings));
    Step step;
    PTERO_RETURN_IF_ERROR(step.dispatch(add, group, CheckAddParams{.n = 64}, {1}));
    PTERO_RETURN_IF_ERROR(device.submit(step));
  }  // gone while the step may still run
  PTERO_REJECT_IF(device.stats().scratch_live != 0, internal,
                  "Live scratch buffers ({}) outlive their owner.", device.stats().scratch_live);
  return wait_for(device.finished());
}

double resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long pages = 0;
  const bool read = file != nullptr && std::fscanf(file, "%*d %ld", &pages) == 1;
  if (file != nullptr) {
    std::fclose(file);
  }
  REQUIRE(read);
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Least squares: bytes that memory grows in one step of the list.
double slope(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean_x = (n - 1) / 2;
  const double mean_y = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double above = 0;
  double below = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - mean_x;
    above += x * (values[i] - mean_y);
    below += x * x;
  }
  return above / below;
}

constexpr int kWarmUps = 50;
// The heap of the driver settles slowly; a leak of one handle a buffer is 100 times the limit.
constexpr int kOwners = 1500;
constexpr double kSlopeLimit = 1024;  // bytes a loop

Status check_lifecycle(Device& device) {
  const DeviceStats before = device.stats();
  PTERO_ASSIGN_OR_RETURN(const auto kernels, wait_for(device.prepare({{&kCheckAdd}})));
  for (int loop = 0; loop < kWarmUps; ++loop) {
    PTERO_RETURN_IF_ERROR(live_and_die(device, kernels[0]), "in warm-up loop {}", loop);
  }
  std::vector<double> memory;
  for (int loop = 0; loop < kOwners; ++loop) {
    PTERO_RETURN_IF_ERROR(live_and_die(device, kernels[0]), "in loop {}", loop);
    memory.push_back(resident_bytes());
  }
  PTERO_REJECT_IF(device.stats().buffers_live != before.buffers_live, internal,
                  "Live buffers ({}) are not back at {}.", device.stats().buffers_live,
                  before.buffers_live);
  const double growth = slope(memory);
  MESSAGE("resident memory grows by " << growth << " bytes a loop");
  // Another driver's heap is its own affair; lavapipe's is known to be flat.
  PTERO_REJECT_IF(on_lavapipe() && growth >= kSlopeLimit, internal,
                  "Memory grows by {:.0f} bytes a loop, above the limit ({:.0f}).", growth,
                  kSlopeLimit);
  return ok_status();
}

const std::vector<Tier> kTiers = {
    {"allocation and zero-size guard", check_allocation},
    {"copy round trip", check_copy},
    {"compute storage round trip", check_compute},
    {"lifecycle of 1,550 owners x 256 buffers", check_lifecycle},
};

TEST_CASE("scratch: every tier passes") {
  Device device = open_device();
  const std::vector<TierReport> reports = run_tiers(device, kTiers);
  REQUIRE(reports.size() == kTiers.size());
  MESSAGE(describe(reports));
  for (const TierReport& report : reports) {
    CHECK_MESSAGE(report.status.ok(), describe(reports));
  }
}

TEST_CASE("scratch: a tier that fails keeps no other from running and reporting") {
  DeviceOptions options;
  options.faults = std::make_shared<FaultPlan>();
  options.faults->add(FaultPoint::buffer, 1, FaultKind::fail);  // meets the first tier only
  Device device = open_device(options);
  const std::vector<TierReport> reports =
      run_tiers(device, {kTiers[0], kTiers[1], kTiers[2], kTiers[0]});
  REQUIRE(reports.size() == 4);
  expect_error(reports[0].status, ErrorCode::out_of_memory, {"(scratch)", "injected fault"});
  CHECK(reports[1].status.ok());
  CHECK(reports[2].status.ok());
  CHECK(reports[3].status.ok());
  const std::string text = describe(reports);
  CHECK(text.find("\"allocation and zero-size guard\": The GPU has no memory left") !=
        std::string::npos);
  CHECK(text.find("\"copy round trip\": passed") != std::string::npos);
}

}  // namespace
}  // namespace ptero::gpu
