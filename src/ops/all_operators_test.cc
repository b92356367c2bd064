// SPDX-License-Identifier: BSD-3-Clause
#include "ops/all_operators.h"

#include <doctest/doctest.h>

namespace ptero::ops {
namespace {

TEST_CASE("operators: every folder registers, and no name twice") {
  CHECK(all_operators().status().ok());
  CHECK(all_operators().find("aten.add.Tensor") != nullptr);
  CHECK(all_operators().find("aten.add.Nobody") == nullptr);
}

}  // namespace
}  // namespace ptero::ops
