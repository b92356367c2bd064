// SPDX-License-Identifier: BSD-3-Clause
#include "llm/logit_distance.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

namespace ptero::llm {
namespace {

LogitDistance distance(const std::vector<float>& reference, const std::vector<float>& other) {
  const auto result = compare_logits(reference, other);
  REQUIRE(result.ok());
  return *result;
}

TEST_CASE("logit distance: by definition") {
  // Probabilities 1/2, 1/4, 1/4 and 1/4, 1/4, 1/2; logits are right up to what they all share.
  const std::vector<float> p = {std::log(2.0f), 0, 0};
  const std::vector<float> q = {100, 100, 100 + std::log(2.0f)};
  const double expected = 0.5 * std::log(2.0) + 0.25 * std::log(1.0) + 0.25 * std::log(0.5);
  CHECK(distance(p, q).divergence == doctest::Approx(expected).epsilon(1e-6));
  CHECK_FALSE(distance(p, q).same_top);
  CHECK(distance(p, p).divergence == 0);
  CHECK(distance(p, p).same_top);
  // From the reference's point of view: what it never says does not count.
  CHECK(distance({0, -1000}, {0, 0}).divergence == doctest::Approx(std::log(2.0)));
  CHECK(distance({0, 0}, {0, -1000}).divergence == doctest::Approx(500 - std::log(2.0)));
  CHECK(distance({30000, -30000}, {30000, -30000}).divergence == 0);
  CHECK(surprise(p, 0) == doctest::Approx(std::log(2.0)));
  CHECK(surprise(q, 0) == doctest::Approx(std::log(4.0)));
}

TEST_CASE("logit distance: what cannot be compared") {
  const std::vector<float> two = {1, 2};
  CHECK_FALSE(compare_logits({}, {}).ok());
  CHECK_FALSE(compare_logits(two, std::span(two).first(1)).ok());
  const std::vector<float> broken = {1, NAN};
  CHECK_FALSE(compare_logits(two, broken).ok());
  CHECK_FALSE(compare_logits(broken, two).ok());
}

}  // namespace
}  // namespace ptero::llm
