// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/feature.h"

#include <array>
#include <string>

namespace ptero::gpu {
namespace {

constexpr std::array<std::string_view, kFeatureCount> kNames = {
    "shader-f16", "subgroups", "subgroup-matrix", "packed-dot", "timestamps", "immediates",
};

}  // namespace

std::string_view feature_name(Feature feature) {
  return kNames[static_cast<std::size_t>(feature)];
}

Result<Feature> parse_feature(std::string_view name) {
  std::string known;
  for (const Feature feature : FeatureSet::all()) {
    if (feature_name(feature) == name) {
      return feature;
    }
    known += known.empty() ? "" : ", ";
    known += feature_name(feature);
  }
  return make_error(ErrorCode::invalid_argument, "Feature name ({}) is not one of {}.", name,
                    known);
}

}  // namespace ptero::gpu
