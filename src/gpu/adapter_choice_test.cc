// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include "gpu/adapter.h"

namespace ptero::gpu {
namespace {

AdapterInfo adapter(std::string name, AdapterType type, std::string driver = "driver") {
  AdapterInfo info;
  info.name = std::move(name);
  info.type = type;
  info.driver = std::move(driver);
  return info;
}

const std::vector<AdapterInfo> kMachine = {
    adapter("llvmpipe (LLVM 21)", AdapterType::cpu, "Mesa 26"),
    adapter("Mystery", AdapterType::unknown),
    adapter("Intel Arc", AdapterType::integrated, "Mesa 26"),
    adapter("NVIDIA H200", AdapterType::discrete, "NVIDIA 580"),
    adapter("NVIDIA H200", AdapterType::discrete, "NVIDIA 580"),
};

TEST_CASE("choose_adapter: without a wish, discrete before integrated before unknown before cpu") {
  std::vector<AdapterInfo> machine = kMachine;
  for (const size_t best : {3, 3, 2, 1, 0}) {
    const Result<size_t> chosen = choose_adapter(machine, "");
    REQUIRE(chosen.ok());
    CHECK(*chosen == best);
    machine.pop_back();  // the best ones stand last, the first of two equal ones wins
  }
}

TEST_CASE("choose_adapter: by index, part of a name or driver in any case, or type") {
  struct {
    std::string_view wanted;
    size_t index;
  } const cases[] = {{"0", 0},        {"4", 4},    {"h200", 3},       {"LLVMPIPE", 0},
                     {"nvidia 5", 3}, {"mesa", 0}, {"integrated", 2}, {"discrete", 3},
                     {"cpu", 0},      {"arc", 2},  {"unknown", 1}};
  for (const auto& test : cases) {
    CAPTURE(test.wanted);
    const Result<size_t> chosen = choose_adapter(kMachine, test.wanted);
    REQUIRE(chosen.ok());
    CHECK(*chosen == test.index);
  }
}

TEST_CASE("choose_adapter: an error lists what there is") {
  const auto error_of = [](const std::vector<AdapterInfo>& machine, std::string_view wanted) {
    const Result<size_t> chosen = choose_adapter(machine, wanted);
    REQUIRE_FALSE(chosen.ok());
    return chosen.error();
  };
  const std::vector<AdapterInfo> two = {kMachine[0], kMachine[3]};
  const Error unmatched = error_of(two, "radeon");
  CHECK(unmatched.code() == ErrorCode::invalid_argument);
  CHECK(unmatched.message() ==
        "No adapter's name, driver or type matches (radeon); this machine has 0: llvmpipe (LLVM "
        "21) (cpu), 1: NVIDIA H200 (discrete).");
  const Error past_the_end = error_of(two, "2");
  CHECK(past_the_end.code() == ErrorCode::invalid_argument);
  CHECK(past_the_end.message().find("Adapter index (2) is not below the number of adapters (2)") ==
        0);
  CHECK(past_the_end.message().find("1: NVIDIA H200 (discrete)") != std::string::npos);
  const Error none = error_of({}, "");
  CHECK(none.code() == ErrorCode::unsupported);
  CHECK(none.message().find("mesa-vulkan-drivers") != std::string::npos);
  CHECK(error_of({}, "cpu").code() == ErrorCode::unsupported);
  CHECK(error_of(two, "99999999999999999999999").code() == ErrorCode::invalid_argument);
  CHECK(error_of(two, "-1").code() == ErrorCode::invalid_argument);
}

const FastPath& path(const std::vector<FastPath>& paths, std::string_view name) {
  for (const FastPath& path : paths) {
    if (path.name == name) {
      return path;
    }
  }
  FAIL("no such path");
  return paths.front();
}

TEST_CASE("fast_paths: allowed with everything, and each says what is missing") {
  AdapterInfo info;
  info.features = FeatureSet::all();
  info.matrix_shapes = {{MatrixType::f16, MatrixType::f32, 16, 16, 16}};
  for (const FastPath& path : fast_paths(info, {})) {
    CAPTURE(path.name);
    CHECK(path.allowed());
  }
  const auto all = fast_paths(info, {});
  CHECK(all.size() == 6);

  struct {
    Feature feature;
    std::string_view path;
  } const uses[] = {
      {Feature::shader_f16, "half precision"},      {Feature::subgroups, "subgroup reductions"},
      {Feature::subgroup_matrix, "matrix units"},   {Feature::shader_f16, "matrix units"},
      {Feature::packed_dot, "packed dot products"}, {Feature::immediates, "immediates"},
      {Feature::subgroups, "matrix units"},         {Feature::timestamps, "timestamps"},
  };
  for (const auto& use : uses) {
    CAPTURE(use.path);
    CAPTURE(feature_name(use.feature));
    const auto off = fast_paths(info, {use.feature});
    CHECK(path(off, use.path).missing ==
          fmt::format("{} is switched off", feature_name(use.feature)));
    AdapterInfo lacking = info;
    lacking.features.erase(use.feature);
    const auto lacks = fast_paths(lacking, {});
    CHECK(path(lacks, use.path).missing ==
          fmt::format("the adapter does not offer {}", feature_name(use.feature)));
  }
}

TEST_CASE("fast_paths: matrices need a shape of f16 into f32") {
  AdapterInfo info;
  info.features = FeatureSet::all();
  info.matrix_shapes = {{MatrixType::i8, MatrixType::i32, 8, 8, 8},
                        {MatrixType::f16, MatrixType::f16, 8, 8, 8}};
  CHECK(path(fast_paths(info, {}), "matrix units").missing ==
        "the adapter's matrices do not multiply f16 into f32");
}

}  // namespace
}  // namespace ptero::gpu
