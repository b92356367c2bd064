// SPDX-License-Identifier: BSD-3-Clause
#include "gguf/gguf.h"

#include <doctest/doctest.h>

#include "base/composed_source.h"
#include "gguf/reader.h"
#include "gguf/test_file.h"

namespace ptero::gguf {
namespace {

using test::TestFile;

template <typename T>
T must(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), result.error().to_string());
  return std::move(result).value();
}

// Every type of value.
TestFile sample() {
  TestFile file;
  file.number("u8", ValueType::uint8, uint8_t{200});
  file.number("i8", ValueType::int8, int8_t{-100});
  file.number("u16", ValueType::uint16, uint16_t{60000});
  file.number("i16", ValueType::int16, int16_t{-30000});
  file.u32("u32", 4'000'000'000u);
  file.number("i32", ValueType::int32, int32_t{-2'000'000'000});
  file.f32("f32", 1.5f);
  file.boolean("yes", true);
  file.boolean("no", false);
  file.text("text", "h\u00e9llo \u2581 \U0001F600");
  file.number("u64", ValueType::uint64, UINT64_MAX);
  file.number("i64", ValueType::int64, INT64_MIN);
  file.number("f64", ValueType::float64, 1e300);
  file.strings("strings", {"", "two", "\u00e9"});
  file.numbers<int32_t>("ints", ValueType::int32, {1, -2, 3});
  file.numbers<float>("floats", ValueType::float32, {0.5f, -0.25f});
  file.numbers<uint64_t>("huge", ValueType::uint64, {UINT64_MAX});
  file.strings("empty", {});
  file.tensor("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  file.tensor("v", {3}, {9, 10, 11});
  return file;
}

TEST_CASE("values, widened") {
  for (const uint32_t version : {2u, 3u}) {
    TestFile made = sample();
    made.version = version;
    const File file = must(read_gguf(made.range()));
    CHECK(file.version == version);
    CHECK(file.name == "test.gguf");
    CHECK(file.alignment == 32);
    CHECK(*must(file.whole_number("u8")) == 200);
    CHECK(std::get<int64_t>(file.find("i8")->content) == -100);
    CHECK(*must(file.whole_number("u16")) == 60000);
    CHECK(std::get<int64_t>(file.find("i16")->content) == -30000);
    CHECK(*must(file.whole_number("u32")) == 4'000'000'000u);
    CHECK(*must(file.number("i32")) == -2e9);
    CHECK(*must(file.number("f32")) == 1.5);
    CHECK(*must(file.boolean("yes")));
    CHECK(!*must(file.boolean("no")));
    CHECK(*must(file.text("text")) == "h\u00e9llo \u2581 \U0001F600");
    CHECK(*must(file.whole_number("u64")) == UINT64_MAX);
    CHECK(std::get<int64_t>(file.find("i64")->content) == INT64_MIN);
    CHECK(*must(file.number("f64")) == 1e300);
    CHECK(!must(file.whole_number("nothing")));
    CHECK(must(file.array("nothing", ValueType::string)) == nullptr);
  }
}

TEST_CASE("values of another type than asked for") {
  const File file = must(read_gguf(sample().range()));
  CHECK(file.whole_number("text").error().message() ==
        "The value of text has the type string instead of a whole number.");
  CHECK(file.whole_number("i8").error().message() == "The value of i8 (-100) is negative.");
  CHECK(file.whole_number("f32").error().message() ==
        "The value of f32 has the type float32 instead of a whole number.");
  CHECK(file.number("yes").error().message() ==
        "The value of yes has the type bool instead of a number.");
  CHECK(file.boolean("u8").error().message() ==
        "The value of u8 has the type uint8 instead of bool.");
  CHECK(file.text("ints").error().message() ==
        "The value of ints has the type array instead of string.");
  CHECK(file.array("text", ValueType::string).error().message() ==
        "The value of text has the type string instead of array.");
  CHECK(file.array("ints", ValueType::string).error().message() ==
        "The elements of ints have the type int32 instead of string.");
  CHECK(integers_of(*must(file.array("huge", ValueType::uint64))).error().message() ==
        "Element (18446744073709551615) of an array exceeds the limit (9223372036854775807).");
}

TEST_CASE("arrays stay in the file and are read when asked for") {
  const File file = must(read_gguf(sample().range()));
  std::vector<std::string> strings;
  const auto collect = [&](std::string_view text) {
    strings.emplace_back(text);
    return ok_status();
  };
  REQUIRE(for_each_string(*must(file.array("strings", ValueType::string)), collect).ok());
  CHECK(strings == std::vector<std::string>{"", "two", "\u00e9"});
  REQUIRE(for_each_string(*must(file.array("empty", ValueType::string)), collect).ok());
  CHECK(strings.size() == 3);
  CHECK(must(integers_of(*must(file.array("ints", ValueType::int32)))) ==
        std::vector<int64_t>{1, -2, 3});
  CHECK(must(floats_of(*must(file.array("floats", ValueType::float32)))) ==
        std::vector<float>{0.5f, -0.25f});
}

TEST_CASE("tensors and where they are") {
  TestFile made = sample();
  made.alignment = 64;
  made.u32("general.alignment", 64);
  made.tensors.clear();
  made.data.clear();
  made.tensor("w", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  made.tensor("v", {3}, {9, 10, 11});
  const File file = must(read_gguf(made.range()));
  CHECK(file.alignment == 64);
  REQUIRE(file.tensors.size() == 2);
  const TensorInfo* v = file.find_tensor("v");
  REQUIRE(v != nullptr);
  CHECK(v->dims == std::vector<uint64_t>{3});
  CHECK(v->elements == 3);
  CHECK(v->data.offset() % 64 == 0);
  std::vector<float> values(3);
  REQUIRE(v->data.read(0, std::as_writable_bytes(std::span(values))).ok());
  CHECK(values == std::vector<float>{9, 10, 11});
  CHECK(file.find_tensor("x") == nullptr);
}

TEST_CASE("a file without tensors needs no padding") {
  TestFile made;
  made.text("general.architecture", "llama");
  made.padded = false;
  CHECK(must(read_gguf(made.range())).tensors.empty());
}

TEST_CASE("the magic tells a GGUF file") {
  CHECK(must(is_gguf(sample().range())));
  CHECK(!must(is_gguf(ByteRange())));
  CHECK(!must(is_gguf(ByteRange::whole(own_bytes({std::byte{'G'}, std::byte{'G'}})))));
}

}  // namespace
}  // namespace ptero::gguf
