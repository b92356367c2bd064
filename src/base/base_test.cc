// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/checked.h"
#include "base/result.h"

namespace ptero {
namespace {

Result<int> parse_even(int value) {
  PTERO_REJECT_IF(value % 2 != 0, invalid_argument, "Value ({}) is not even.", value);
  return value;
}

Result<int> half(int value) {
  PTERO_ASSIGN_OR_RETURN(const int even, parse_even(value), "while halving {}", value);
  return even / 2;
}

Status outer(int value) {
  PTERO_RETURN_IF_ERROR(half(value), "while in outer");
  return ok_status();
}

TEST_CASE("result: a value travels through the macros unchanged") {
  const Result<int> result = half(42);
  REQUIRE(result.ok());
  CHECK(*result == 21);
  CHECK(outer(42).ok());
}

TEST_CASE("result: an error keeps its code and gathers context innermost first") {
  const Status status = outer(7);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::invalid_argument);
  CHECK(status.error().to_string() == "Value (7) is not even. / while halving 7 / while in outer");
}

TEST_CASE("result: move-only values") {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  REQUIRE(result.ok());
  const std::unique_ptr<int> taken = std::move(result).value();
  CHECK(*taken == 3);
}

TEST_CASE("result: every code has its own name and a non-zero exit status") {
  std::set<std::string> names;
  std::set<int> statuses;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const ErrorCodeInfo info = error_code_info(static_cast<ErrorCode>(i));
    CHECK(info.exit_status > 1);
    names.emplace(info.name);
    statuses.insert(info.exit_status);
  }
  CHECK(names.size() == static_cast<size_t>(ErrorCode::internal) + 1);
  CHECK(statuses.size() == names.size());
}

TEST_CASE("checked arithmetic: at the edge and past it") {
  constexpr uint64_t kMax = UINT64_MAX;
  CHECK(checked_add<uint64_t>(kMax - 1, 1) == kMax);
  CHECK_FALSE(checked_add<uint64_t>(kMax, 1));
  CHECK(checked_mul<uint32_t>(65536, 65535) == 4294901760u);
  CHECK_FALSE(checked_mul<uint32_t>(65536, 65536));
  CHECK(checked_mul<uint64_t>(kMax, 0) == 0u);
  CHECK(checked_cast<int32_t>(uint64_t{2147483647}) == 2147483647);
  CHECK_FALSE(checked_cast<int32_t>(uint64_t{2147483648}));
  CHECK_FALSE(checked_cast<uint32_t>(-1));
  CHECK(checked_round_up<uint64_t>(13, 4) == 16u);
  CHECK(checked_round_up<uint64_t>(16, 4) == 16u);
  CHECK_FALSE(checked_round_up<uint64_t>(kMax, 4));
  CHECK(ceil_div<uint32_t>(UINT32_MAX, 2) == 2147483648u);
}

}  // namespace
}  // namespace ptero
