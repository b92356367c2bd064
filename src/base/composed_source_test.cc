// SPDX-License-Identifier: BSD-3-Clause
#include "base/composed_source.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

namespace ptero {
namespace {

ByteRange text(std::string_view characters) {
  const auto bytes = std::as_bytes(std::span(characters));
  return ByteRange::whole(own_bytes({bytes.begin(), bytes.end()}));
}

std::string read(const ByteSource& source, uint64_t offset, size_t size) {
  std::string out(size, '?');
  const Status status = source.read(offset, std::as_writable_bytes(std::span(out)));
  REQUIRE(status.ok());
  return out;
}

TEST_CASE("composed source: parts, gaps and every range of them") {
  const auto made =
      compose_bytes(12, {{1, text("abc")}, {4, text("")}, {4, text("de")}, {8, text("f")}}, "x");
  REQUIRE(made.ok());
  const ByteSource& source = **made;
  const std::string all("\0abcde\0\0f\0\0\0", 12);
  CHECK(source.size() == 12);
  for (size_t from = 0; from <= 12; ++from) {
    for (size_t to = from; to <= 12; ++to) {
      CHECK(read(source, from, to - from) == all.substr(from, to - from));
    }
  }
  std::byte one;
  CHECK(source.read(12, {&one, 1}).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("composed source: a view exists exactly inside one part") {
  const auto made = compose_bytes(9, {{1, text("abc")}, {4, text("de")}}, "x");
  REQUIRE(made.ok());
  const auto view = (*made)->view(2, 2);
  REQUIRE(view.has_value());
  CHECK((*view)[0] == std::byte{'b'});
  CHECK((*made)->view(4, 2).has_value());
  CHECK_FALSE((*made)->view(3, 2).has_value());  // crosses into the next part
  CHECK_FALSE((*made)->view(0, 1).has_value());  // a gap
  CHECK_FALSE((*made)->view(6, 1).has_value());
  CHECK_FALSE((*made)->view(5, 2).has_value());
  CHECK_FALSE((*made)->view(5, UINT64_MAX).has_value());
}

TEST_CASE("composed source: overlapping and outlying parts are refused") {
  CHECK(compose_bytes(9, {{0, text("abc")}, {2, text("d")}}, "x").error().message() ==
        "The part at offset 2 of x starts before the end of its predecessor (3).");
  CHECK(compose_bytes(3, {{1, text("abc")}}, "x").error().message() ==
        "The part of 3 bytes at offset 1 leaves x (3 bytes).");
  CHECK_FALSE(compose_bytes(3, {{UINT64_MAX, text("abc")}}, "x").ok());
}

TEST_CASE("generated source: bytes are made on demand, errors come through") {
  int calls = 0;
  const auto source = generate_bytes(1000, [&](uint64_t offset, std::span<std::byte> out) {
    ++calls;
    for (std::byte& b : out) {
      b = static_cast<std::byte>(offset++ % 251);
    }
    return offset <= 900 ? ok_status() : Status(make_error(ErrorCode::io, "The well is dry."));
  });
  CHECK(calls == 0);
  CHECK(static_cast<unsigned char>(read(*source, 255, 1)[0]) == 4);
  std::byte one;
  CHECK(source->read(1000, {&one, 1}).error().code() == ErrorCode::invalid_argument);
  CHECK(calls == 1);
  CHECK(source->read(950, {&one, 1}).error().message() == "The well is dry.");
}

TEST_CASE("copying reads every byte once, in order, in pieces") {
  const uint64_t size = 2 * kCopyPieceSize + 3;
  uint64_t next = 0;
  const auto source = generate_bytes(size, [&](uint64_t offset, std::span<std::byte> out) {
    CHECK(offset == next);
    CHECK(out.size() <= kCopyPieceSize);
    next += out.size();
    return ok_status();
  });
  uint64_t copied = 0;
  CHECK(copy_bytes(*source, [&](std::span<const std::byte> piece) {
          copied += piece.size();
          return ok_status();
        }).ok());
  CHECK(copied == size);
  CHECK(next == size);
}

}  // namespace
}  // namespace ptero
