// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/variant.h"

#include <map>
#include <set>

#include <doctest/doctest.h>

#include "ops/common/one_op_fixture.h"

namespace ptero::ops {
namespace {

using pte::GraphDtype;

TEST_CASE("variants: each has a name of its own, that finds it again") {
  std::set<std::string> names;
  for (const Variant& variant : variants()) {
    CHECK(names.insert(name_of(variant)).second);
    const auto found = parse_variant(name_of(variant));
    REQUIRE(found.ok());
    CHECK(*found == variant);
  }
  CHECK(names == std::set<std::string>{"f32", "f32x2", "f32x4", "f16", "f16x2", "f16x4",
                                       "f32+subgroups", "f32x2+subgroups", "f32x4+subgroups",
                                       "f16+subgroups", "f16x2+subgroups", "f16x4+subgroups"});
}

TEST_CASE("variants: an unknown one is refused with those there are") {
  for (const char* name : {"", "f64", "f32x3", "f32x8", "F32", "f32 ", "f16+matrix"}) {
    const auto found = parse_variant(name);
    REQUIRE_FALSE(found.ok());
    CHECK(found.error().code() == ErrorCode::invalid_argument);
    CHECK(found.error().message().starts_with(
        fmt::format("There is no variant ({}); there are f32, f32x2,", name)));
  }
  for (const Variant& variant :
       {Variant{GraphDtype::int32, 1, false}, Variant{GraphDtype::float32, 3, false},
        Variant{GraphDtype::float16, 0, true}, Variant{GraphDtype::float32, 8, false}}) {
    const auto made = make_variant(variant);
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().message().find("(" + name_of(variant) + ")") != std::string::npos);
  }
}

// What kernels and caches of pipelines rely on: the same key, the same bytes.
TEST_CASE("variants: the text of every one") {
  const std::string plain =
      "const kSubgroups = false;\n"
      "fn subgroup_total(value: f32) -> f32 { return value; }\n"
      "fn subgroup_lanes() -> u32 { return 1u; }\n";
  const std::string in_subgroups =
      "const kSubgroups = true;\n"
      "fn subgroup_total(value: f32) -> f32 { return subgroupAdd(value); }\n"
      "fn subgroup_lanes() -> u32 { return subgroupAdd(1u); }\n";
  const std::string one = "fn total(sum: W) -> f32 { return sum; }\n";
  const std::string several = "fn total(sum: W) -> f32 { return dot(sum, W(1.0)); }\n";
  const std::map<std::string, std::string> types = {
      {"f32", "alias T = f32;\nalias V = f32;\nalias W = f32;\nconst kWidth = 1u;\n" + one},
      {"f32x2", "alias T = f32;\nalias V = vec2<f32>;\nalias W = vec2<f32>;\nconst kWidth = 2u;\n" +
                    several},
      {"f32x4", "alias T = f32;\nalias V = vec4<f32>;\nalias W = vec4<f32>;\nconst kWidth = 4u;\n" +
                    several},
      {"f16", "alias T = f16;\nalias V = f16;\nalias W = f32;\nconst kWidth = 1u;\n" + one},
      {"f16x2", "alias T = f16;\nalias V = vec2<f16>;\nalias W = vec2<f32>;\nconst kWidth = 2u;\n" +
                    several},
      {"f16x4", "alias T = f16;\nalias V = vec4<f16>;\nalias W = vec4<f32>;\nconst kWidth = 4u;\n" +
                    several},
  };
  CHECK(variants().size() == 2 * types.size());
  for (const auto& [name, text] : types) {
    const gpu::FeatureSet half =
        name.starts_with("f16") ? gpu::FeatureSet{gpu::Feature::shader_f16} : gpu::FeatureSet{};
    const auto without = make_variant(*parse_variant(name));
    CHECK(without->prelude == text + plain);
    CHECK(without->features == half);
    const auto with = make_variant(*parse_variant(name + "+subgroups"));
    CHECK(with->prelude == text + in_subgroups);
    CHECK(with->features == (half | gpu::FeatureSet{gpu::Feature::subgroups}));
  }
}

}  // namespace
}  // namespace ptero::ops
