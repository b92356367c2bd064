// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/feature.h"

#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace ptero::gpu {
namespace {

static_assert(std::input_iterator<FeatureSet::Iterator>);

TEST_CASE("feature: every name parses back to its feature") {
  int count = 0;
  for (const Feature feature : FeatureSet::all()) {
    const Result<Feature> parsed = parse_feature(feature_name(feature));
    REQUIRE(parsed.ok());
    CHECK(*parsed == feature);
    ++count;
  }
  CHECK(count == kFeatureCount);
  CHECK(feature_name(Feature::subgroup_matrix) == "subgroup-matrix");
  CHECK(feature_name(Feature::immediates) == "immediates");
}

TEST_CASE("feature: an unknown name is an error that lists the known ones") {
  const Result<Feature> parsed = parse_feature("f16");
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().code() == ErrorCode::invalid_argument);
  CHECK(parsed.error().message() ==
        "Feature name (f16) is not one of shader-f16, subgroups, subgroup-matrix, packed-dot, "
        "timestamps, immediates.");
  CHECK_FALSE(parse_feature("").ok());
}

TEST_CASE("feature set: insert, erase, union, intersection and order of iteration") {
  FeatureSet set{Feature::timestamps, Feature::shader_f16};
  CHECK(set.size() == 2);
  CHECK(set.contains(Feature::shader_f16));
  CHECK_FALSE(set.contains(Feature::subgroups));
  set.insert(Feature::subgroups);
  CHECK(std::vector<Feature>(set.begin(), set.end()) ==
        std::vector<Feature>{Feature::shader_f16, Feature::subgroups, Feature::timestamps});
  set.erase(Feature::shader_f16);
  CHECK(set == FeatureSet{Feature::subgroups, Feature::timestamps});
  CHECK((set | FeatureSet{Feature::immediates}).size() == 3);
  CHECK((set & FeatureSet{Feature::subgroups}) == FeatureSet{Feature::subgroups});
  CHECK(FeatureSet::all().contains_all(set));
  CHECK_FALSE(set.contains_all(FeatureSet::all()));
  CHECK(FeatureSet{}.empty());
  CHECK(FeatureSet{}.begin() == FeatureSet{}.end());
}

}  // namespace
}  // namespace ptero::gpu
