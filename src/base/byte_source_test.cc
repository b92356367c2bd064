// SPDX-License-Identifier: BSD-3-Clause
#include "base/byte_source.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

namespace ptero {
namespace {

std::vector<std::byte> counting(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i);
  }
  return bytes;
}

// Reads and views at the edges and past them; the same for every kind of source.
void check_source(const ByteSource& source) {
  REQUIRE(source.size() == 200);
  std::array<std::byte, 3> out;
  REQUIRE(source.read(197, out).ok());
  CHECK(out[0] == std::byte{197});
  CHECK(out[2] == std::byte{199});
  CHECK(source.read(200, {}).ok());
  const Status past = source.read(198, out);
  REQUIRE_FALSE(past.ok());
  CHECK(past.error().code() == ErrorCode::invalid_argument);
  CHECK(past.error().message() ==
        "The read of 3 bytes at offset 198 leaves " + source.name() + " (200 bytes).");
  CHECK_FALSE(source.read(UINT64_MAX, out).ok());  // wraps
  REQUIRE(source.view(100, 100).has_value());
  CHECK(source.view(100, 100)->front() == std::byte{100});
  CHECK_FALSE(source.view(101, 100).has_value());
  CHECK_FALSE(source.view(UINT64_MAX, 2).has_value());
}

TEST_CASE("byte source: owned, borrowed and mapped bytes behave alike") {
  const std::vector<std::byte> bytes = counting(200);
  check_source(*own_bytes(bytes));
  check_source(*borrow_bytes(bytes, "mine"));

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "ptero_byte_source_test.bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(200));
  Result<ByteSourcePtr> mapped = map_file(path.string());
  REQUIRE(mapped.ok());
  CHECK((*mapped)->name() == path.string());
  check_source(**mapped);
  std::ofstream(path, std::ios::binary | std::ios::trunc).close();
  mapped = map_file(path.string());
  REQUIRE(mapped.ok());
  CHECK((*mapped)->size() == 0);
  std::filesystem::remove(path);
}

TEST_CASE("byte source: what cannot be mapped is an io error that names the path") {
  const Result<ByteSourcePtr> missing = map_file("/nonexistent/model.pte");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code() == ErrorCode::io);
  CHECK(missing.error().message().find("/nonexistent/model.pte") != std::string::npos);
  const Result<ByteSourcePtr> folder = map_file(std::filesystem::temp_directory_path().string());
  REQUIRE_FALSE(folder.ok());
  CHECK(folder.error().code() == ErrorCode::io);
}

TEST_CASE("byte range: parts of parts stay inside and keep their source alive") {
  ByteRange part;
  {
    const Result<ByteRange> outer = ByteRange::make(own_bytes(counting(200)), 100, 50);
    REQUIRE(outer.ok());
    const Result<ByteRange> inner = outer->subrange(10, 20);
    REQUIRE(inner.ok());
    part = *inner;
    CHECK_FALSE(outer->subrange(31, 20).ok());
    CHECK_FALSE(outer->subrange(UINT64_MAX, 2).ok());
  }
  CHECK(part.offset() == 110);
  REQUIRE(part.view().has_value());
  CHECK(part.view()->front() == std::byte{110});
  std::array<std::byte, 2> out;
  REQUIRE(part.read(18, out).ok());
  CHECK(out[1] == std::byte{129});
  CHECK_FALSE(part.read(19, out).ok());
  CHECK(part.copy(20)->size() == 20);
  CHECK(part.copy(19).error().code() == ErrorCode::out_of_memory);
  CHECK_FALSE(ByteRange::make(own_bytes(counting(4)), 2, 3).ok());

  const ByteRange nothing;
  CHECK(nothing.empty());
  CHECK(nothing.view()->empty());
  CHECK(nothing.read(0, {}).ok());
  CHECK_FALSE(nothing.read(0, out).ok());
}

}  // namespace
}  // namespace ptero
