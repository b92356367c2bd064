// SPDX-License-Identifier: BSD-3-Clause
// Bytes from host to device and back.
#include <algorithm>

#include <doctest/doctest.h>

#include "gpu/testing/in_place.wgsl.h"
#include "gpu/testing/test_device.h"

namespace ptero::gpu {
namespace {

using namespace testing;
using namespace wgsl;

uint64_t staging_bytes(const Device& device) {
  return device.stats().bytes_by_kind[static_cast<size_t>(MemoryKind::staging)];
}

std::vector<std::byte> pattern(size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 37 + seed);
  }
  return bytes;
}

std::vector<std::byte> part(const std::vector<std::byte>& bytes, size_t offset, size_t size) {
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
  return {from, from + static_cast<std::ptrdiff_t>(size)};
}

TEST_CASE("readback: several ranges of several buffers, of sizes that are no multiple of 4") {
  Device device = open_device();
  const Buffer a = make_buffer(device, "a", 1001);
  const Buffer b = make_buffer(device, "b", 77);
  const std::vector<std::byte> a_bytes = pattern(1001, 1);
  const std::vector<std::byte> b_bytes = pattern(77, 2);
  must(device.write(a, 0, a_bytes));
  must(device.write(b, 0, b_bytes));
  const std::vector<ReadRange> ranges = {{&a, 0, 1},    {&b, 4, 3},  {&a, 996, 5},
                                         {&a, 0, 1001}, {&b, 76, 1}, {&a, 8, 6},
                                         {&b, 0, 77},   {&a, 12, 4}, {&b, 0, 2}};
  const uint64_t before = device.stats().bytes_read_back;
  const ReadData data = must(device.submit_and_read(nullptr, ranges));
  REQUIRE(data.size() == ranges.size());
  uint64_t total = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    CAPTURE(i);
    const auto& whole = ranges[i].buffer == &a ? a_bytes : b_bytes;
    CHECK(data[i] == part(whole, ranges[i].offset, ranges[i].size));
    total += ranges[i].size;
  }
  CHECK(device.stats().bytes_read_back - before == total);
}

TEST_CASE("write: offsets and odd sizes, the rest of the last word is zero, the rest stays") {
  Device device = open_device();
  const Buffer buffer = make_buffer(device, "x", 16);
  must(device.write(buffer, 0, pattern(16, 9)));
  must(device.write(buffer, 4, pattern(5, 50)));
  std::vector<std::byte> want = pattern(16, 9);
  const std::vector<std::byte> written = pattern(5, 50);
  std::copy(written.begin(), written.end(), want.begin() + 4);
  std::fill(want.begin() + 9, want.begin() + 12, std::byte{0});
  CHECK(must(device.read(buffer, 0, 16)).front() == want);
  CHECK(device.stats().bytes_written == 21);
}

TEST_CASE("write: stands in order between the submits around it") {
  Device device = open_device();
  const Kernel kernel = prepare(device, kInPlace);
  const Buffer y = upload(device, "y", std::vector<float>{16});
  Step step;
  must(step.dispatch(kernel, bind(device, kernel, {{&y}}), InPlaceParams{.n = 1, .add = 0}, {1}));
  must(device.submit(step));
  auto first = started(device.read(y, 0, 4));
  const float value = 100;
  must(device.write(y, 0, std::as_bytes(std::span(&value, 1))));
  auto second = started(device.read(y, 0, 4));
  must(device.submit(step));
  CHECK(download<float>(device, y).front() == 50);
  CHECK(values_of<float>(must(std::move(second)).front()).front() == 100);
  CHECK(values_of<float>(must(std::move(first)).front()).front() == 8);
}

TEST_CASE("readback: abandoned ones do no harm and their memory is counted out") {
  Device device = open_device();
  const Buffer buffer = upload(device, "x", std::vector<uint32_t>(1000, 42));
  const uint64_t bytes = device.stats().bytes_live;
  const uint64_t live = device.stats().buffers_live;
  for (int i = 0; i < 50; ++i) {
    const auto reading = started(device.read(buffer, 0, 4000));
    CHECK(staging_bytes(device) == 4000);
  }
  CHECK(device.stats().bytes_live == bytes);
  uint64_t kept = 0;
  {
    const auto reading = started(device.read(buffer, 0, 4000));
    const bool done = reading->advance();  // begun and given up; if done, the pool has it
    CHECK(device.stats().bytes_live == bytes + 4000);
    CHECK(device.stats().buffers_live == live + 1);
    kept = done ? 1 : 0;
  }
  CHECK(device.stats().bytes_live == bytes + 4000 * kept);
  CHECK(device.stats().buffers_live == live + kept);
  must(device.finished());
  CHECK(download<uint32_t>(device, buffer) == std::vector<uint32_t>(1000, 42));
}

TEST_CASE("readback: staging buffers are used again, and few are kept") {
  Device device = open_device();
  const Buffer buffer = upload(device, "x", std::vector<uint32_t>(1000, 42));
  must(device.read(buffer, 0, 4000));
  const uint64_t created = device.stats().buffers_created;
  for (int i = 0; i < 10; ++i) {
    CHECK(must(device.read(buffer, 0, 4000)).front().size() == 4000);
    CHECK(must(device.read(buffer, 0, 2001)).front().size() == 2001);  // more than half
  }
  CHECK(device.stats().buffers_created == created);
  CHECK(staging_bytes(device) == 4000);
  must(device.read(buffer, 0, 8));  // far smaller: its own
  CHECK(device.stats().buffers_created == created + 1);
  CHECK(staging_bytes(device) == 4008);

  std::vector<std::unique_ptr<Pending<ReadData>>> many;
  for (int i = 0; i < 30; ++i) {
    many.push_back(started(device.read(buffer, 0, 4000)));
  }
  CHECK(staging_bytes(device) == 30 * 4000 + 8);
  for (auto& reading : many) {
    CHECK(values_of<uint32_t>(must(std::move(reading)).front()) == std::vector<uint32_t>(1000, 42));
  }
  CHECK(staging_bytes(device) == 8 * 4000);  // the pool holds eight
  CHECK(device.stats().bytes_peak == 124'008);
}

TEST_CASE("stats: bytes by kind come and go with their buffers") {
  Device device = open_device();
  {
    const auto weights = must(device.create_buffer("w", 1001, MemoryKind::weights));
    auto cache = must(device.create_buffer("c", 64, MemoryKind::cache));
    CHECK(weights.size() == 1001);
    CHECK(device.stats().bytes_by_kind[static_cast<size_t>(MemoryKind::weights)] == 1004);
    CHECK(device.stats().bytes_by_kind[static_cast<size_t>(MemoryKind::cache)] == 64);
    CHECK(device.stats().bytes_live == 1068);
    CHECK(device.stats().buffers_live == 2);
    Buffer moved = std::move(cache);
    cache = Buffer();
    CHECK(moved.label() == "c");
    CHECK(device.stats().buffers_live == 2);
    moved = must(device.create_buffer("d", 4, MemoryKind::cache));  // frees what it held
    CHECK(device.stats().bytes_by_kind[static_cast<size_t>(MemoryKind::cache)] == 4);
  }
  CHECK(device.stats().bytes_live == 0);
  CHECK(device.stats().buffers_live == 0);
  CHECK(device.stats().bytes_peak == 1072);
  CHECK(device.stats().buffers_created == 3);
}

}  // namespace
}  // namespace ptero::gpu
