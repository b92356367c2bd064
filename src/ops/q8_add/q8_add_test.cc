// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"
#include "ops/q8_add/q8_add.wgsl.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;

TEST_CASE("q8ta_add: scales over that of the result, at the live shape; the rest is refused") {
  OneOpFixture op;
  const uint32_t a = op.input({3, 9}, GraphDtype::int8);
  const uint32_t b = op.input({3, 9}, GraphDtype::int8);
  const uint32_t y = op.output({3, 9}, GraphDtype::int8);
  const uint32_t scales[] = {op.value(0.5), op.value(0.25), op.value(2.0), op.value(int64_t{-7})};
  const auto args = [&](uint32_t first, uint32_t y_scale, uint32_t zero) {
    return std::vector<uint32_t>{first, b,       scales[0], zero,          scales[1],
                                 zero,  y_scale, zero,      op.value(3.0), y};
  };
  const auto plan = op.plan("et_vk.q8ta_add.default", args(a, scales[2], scales[3]),
                            {graph::Shape{2, 9}, graph::Shape{2, 9}});
  REQUIRE(plan.ok());
  CHECK((*plan)->output_shapes[0] == graph::Shape{2, 9});
  const auto params = params_of<wgsl::Q8AddParams>(dispatch_at(**plan, 0));
  CHECK(params.n == 18);
  CHECK(params.a_scale == 0.25f);
  CHECK(params.b_scale == 0.375f);
  CHECK(params.y_zero == -7);

  CHECK(op.plan_error("et_vk.q8ta_add.default", args(a, op.value(0.0), scales[3])).message() ==
        "Scale (0) is not a positive number.");
  CHECK(op.plan_error("et_vk.q8ta_add.default", args(a, scales[2], op.value(int64_t{200})))
            .message() == "Zero point (200) does not lie between -128 and 127.");
  const uint32_t wrong = op.input({3, 9});
  CHECK(op.plan_error("et_vk.q8ta_add.default", args(wrong, scales[2], scales[3])).code() ==
        ErrorCode::unsupported);
}

}  // namespace
}  // namespace ptero::ops
