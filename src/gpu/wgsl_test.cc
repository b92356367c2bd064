// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/wgsl.h"

#include <array>
#include <cstddef>
#include <limits>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/wgsl_sample.wgsl.h"

namespace ptero::gpu {
namespace {

using wgsl::kWgslSample;
using wgsl::WgslSampleParams;

constexpr std::string_view kPrelude = "alias T = f32;\nfn activate(v: T) -> T { return v; }";

KernelKey sample_key() {
  return {.source = &kWgslSample,
          .prelude = std::string(kPrelude),
          .overrides = {{"gain", 0.5}},
          .features = {}};
}

std::string sentence(const Result<WgslModule>& result) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code() == ErrorCode::invalid_argument);
  return result.error().message();
}

std::string sentence_for(std::vector<OverrideValue> overrides) {
  KernelKey key = sample_key();
  key.overrides = std::move(overrides);
  return sentence(assemble_wgsl(key, ParamsRoute::uniform));
}

TEST_CASE("embedded kernel: declarations and text arrive in the program") {
  CHECK(kWgslSample.name == "wgsl_sample");
  REQUIRE(kWgslSample.bindings.size() == 3);
  CHECK(kWgslSample.bindings[0].name == "x");
  CHECK_FALSE(kWgslSample.bindings[0].writes);
  CHECK(kWgslSample.bindings[1].name == "weight");
  CHECK_FALSE(kWgslSample.bindings[1].writes);
  CHECK(kWgslSample.bindings[2].name == "y");
  CHECK(kWgslSample.bindings[2].writes);
  REQUIRE(kWgslSample.overrides.size() == 3);
  CHECK(kWgslSample.overrides[0].type == OverrideType::u32);
  CHECK(kWgslSample.overrides[0].default_value == 64);
  CHECK(kWgslSample.overrides[1].type == OverrideType::boolean);
  CHECK_FALSE(kWgslSample.overrides[2].has_default);
  CHECK(kWgslSample.text.find("linear_index(id: vec3u") != std::string_view::npos);
  CHECK(kWgslSample.text.find("uniform") == std::string_view::npos);
  CHECK(kWgslSample.hash != 0);
}

TEST_CASE("embedded kernel: the parameter struct has WGSL's uniform layout and zero padding") {
  CHECK(kWgslSample.params_size == sizeof(WgslSampleParams));
  CHECK(WgslSampleParams::kKernel == kWgslSample.name);
  CHECK(offsetof(WgslSampleParams, origin) == 8);
  CHECK(offsetof(WgslSampleParams, shape) == 16);
  CHECK(offsetof(WgslSampleParams, bias) == 32);
  CHECK(offsetof(WgslSampleParams, scale) == 44);
  CHECK(sizeof(WgslSampleParams) == 64);

  alignas(WgslSampleParams) std::array<unsigned char, sizeof(WgslSampleParams)> bytes;
  bytes.fill(0xff);
  new (bytes.data()) WgslSampleParams{.n = 7, .origin = {-1, 2}, .scale = 1.5f};
  CHECK(bytes[0] == 7);
  for (const std::size_t padding : {4, 5, 6, 7, 52, 55, 63}) {
    CHECK(bytes[padding] == 0);
  }
}

TEST_CASE("assemble_wgsl: directives, prelude, parameters and text in this order") {
  KernelKey key = sample_key();
  key.features = FeatureSet::all();
  const Result<WgslModule> module = assemble_wgsl(key, ParamsRoute::immediate);
  REQUIRE(module.ok());
  const std::string header =
      "enable f16;\n"
      "enable subgroups;\n"
      "enable chromium_experimental_subgroup_matrix;\n"
      "requires packed_4x8_integer_dot_product;\n"
      "requires immediate_address_space;\n"
      "alias T = f32;\n"
      "fn activate(v: T) -> T { return v; }\n"
      "var<immediate> p: Params;\n";
  CHECK(module->text == header + std::string(kWgslSample.text));
  CHECK(module->header_lines == 8);
}

TEST_CASE("assemble_wgsl: features and immediates leave no trace when they are off") {
  const Result<WgslModule> module = assemble_wgsl(sample_key(), ParamsRoute::uniform);
  REQUIRE(module.ok());
  CHECK(module->text.starts_with(kPrelude));
  CHECK(module->text.find("enable") == std::string::npos);
  CHECK(module->text.find("requires") == std::string::npos);
  CHECK(module->text.find("immediate") == std::string::npos);
  CHECK(module->text.find("\n@group(1) @binding(0) var<uniform> p: Params;\n") !=
        std::string::npos);
  CHECK(module->header_lines == 3);

  KernelKey key = sample_key();
  key.features = {Feature::timestamps, Feature::immediates};
  const Result<WgslModule> same = assemble_wgsl(key, ParamsRoute::uniform);
  REQUIRE(same.ok());
  CHECK(same->text == module->text);
}

TEST_CASE("assemble_wgsl: equal keys give equal bytes, override values do not change the text") {
  KernelKey key = sample_key();
  const Result<WgslModule> first = assemble_wgsl(key, ParamsRoute::uniform);
  const Result<WgslModule> again = assemble_wgsl(sample_key(), ParamsRoute::uniform);
  key.overrides.push_back({"wg_size", 128});
  const Result<WgslModule> wide = assemble_wgsl(key, ParamsRoute::uniform);
  REQUIRE(first.ok());
  REQUIRE(again.ok());
  REQUIRE(wide.ok());
  CHECK(first->text == again->text);
  CHECK(first->text == wide->text);
}

TEST_CASE("assemble_wgsl: a kernel without parameters and without a prelude is its own text") {
  const KernelSource plain{.name = "plain", .text = "fn f() {}\n"};
  const Result<WgslModule> module = assemble_wgsl({.source = &plain}, ParamsRoute::none);
  REQUIRE(module.ok());
  CHECK(module->text == plain.text);
  CHECK(module->header_lines == 0);
  CHECK(sentence(assemble_wgsl({.source = &plain}, ParamsRoute::uniform)) ==
        "Route of parameters (uniform or immediate) does not fit kernel (plain), whose Params take "
        "0 bytes.");
  CHECK(sentence(assemble_wgsl({}, ParamsRoute::none)) == "Kernel key has no source.");
}

TEST_CASE("assemble_wgsl: override mistakes are errors with names") {
  CHECK(sentence_for({{"gain", 1}, {"gian", 1}}) ==
        "Override (gian) is not declared by kernel (wgsl_sample); it declares wg_size, negate, "
        "gain.");
  CHECK(sentence_for({}) ==
        "Override (gain) of kernel (wgsl_sample) has neither a value nor a default.");
  CHECK(sentence_for({{"gain", 1}, {"gain", 1}}) ==
        "Override (gain) of kernel (wgsl_sample) is given twice.");
  CHECK(sentence_for({{"gain", 1}, {"wg_size", 0.5}}) ==
        "Value (0.5) of override (wg_size) of kernel (wgsl_sample) does not fit its type (u32).");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [name, value] : std::vector<OverrideValue>{{"wg_size", -1},
                                                              {"wg_size", 4294967296.0},
                                                              {"negate", 2},
                                                              {"gain", 1e39},
                                                              {"gain", nan}}) {
    KernelKey key = sample_key();
    std::erase_if(key.overrides, [&name = name](const auto& given) { return given.name == name; });
    key.overrides.push_back({name, value});
    CHECK_MESSAGE(sentence(assemble_wgsl(key, ParamsRoute::uniform)).starts_with("Value ("), name);
  }
}

TEST_CASE("assemble_wgsl: override values fit their types up to the last number") {
  static constexpr OverrideDecl kDecls[] = {{"i", OverrideType::i32, true, 0},
                                            {"u", OverrideType::u32, true, 0},
                                            {"f", OverrideType::f32, true, 0},
                                            {"h", OverrideType::f16, true, 0},
                                            {"b", OverrideType::boolean, true, 0}};
  const KernelSource source{.name = "types", .text = "", .overrides = kDecls};
  const auto fits = [&source](std::string name, double value) {
    const KernelKey key{.source = &source, .overrides = {{std::move(name), value}}};
    return assemble_wgsl(key, ParamsRoute::none).ok();
  };
  CHECK(fits("i", -2147483648.0));
  CHECK_FALSE(fits("i", -2147483649.0));
  CHECK(fits("i", 2147483647.0));
  CHECK_FALSE(fits("i", 2147483648.0));
  CHECK(fits("u", 4294967295.0));
  CHECK_FALSE(fits("u", 4294967296.0));
  CHECK(fits("f", 3.4e38));
  CHECK_FALSE(fits("f", 3.5e38));
  CHECK(fits("h", -65504));
  CHECK_FALSE(fits("h", -65505));
  CHECK(fits("b", 1));
  CHECK_FALSE(fits("b", 0.5));
}

TEST_CASE("assemble_wgsl: immediates carry no more than 64 bytes and no arrays") {
  KernelSource large = kWgslSample;
  large.params_size = kMaxImmediateBytes + 4;
  KernelKey key = sample_key();
  key.source = &large;
  CHECK(sentence(assemble_wgsl(key, ParamsRoute::immediate)) ==
        "Size of Params (68 bytes) of kernel (wgsl_sample) exceeds that of immediates (64).");
  CHECK(assemble_wgsl(key, ParamsRoute::uniform).ok());
  CHECK(params_route(large, FeatureSet::all()) == ParamsRoute::uniform);

  KernelSource array = kWgslSample;
  array.params_have_array = true;
  key.source = &array;
  CHECK(sentence(assemble_wgsl(key, ParamsRoute::immediate)) ==
        "Params of kernel (wgsl_sample) have an array, which immediates cannot hold.");
  CHECK(params_route(array, FeatureSet::all()) == ParamsRoute::uniform);
}

TEST_CASE("params_route: immediates where the device and the parameters allow") {
  CHECK(params_route(kWgslSample, {Feature::immediates}) == ParamsRoute::immediate);
  CHECK(params_route(kWgslSample, {Feature::shader_f16}) == ParamsRoute::uniform);
  const KernelSource plain{.name = "plain", .text = ""};
  CHECK(params_route(plain, FeatureSet::all()) == ParamsRoute::none);
}

TEST_CASE("kernel key: equality and hash follow every field") {
  std::vector<KernelKey> keys(6, sample_key());
  static constexpr KernelSource kOther{.name = "other", .text = "", .hash = 3};
  keys[1].source = &kOther;
  keys[2].prelude += " ";
  keys[3].overrides[0].value = 2;
  keys[4].overrides[0].name = "wg_size";
  keys[5].features.insert(Feature::subgroups);
  std::unordered_set<KernelKey> cache(keys.begin(), keys.end());
  CHECK(cache.size() == keys.size());
  CHECK(cache.contains(sample_key()));
  std::unordered_set<std::size_t> hashes;
  for (const KernelKey& key : keys) {
    hashes.insert(hash_value(key));
  }
  CHECK(hashes.size() == keys.size());
}

TEST_CASE("override_value: the key's value, else the literal default, else an error") {
  const KernelKey key = sample_key();
  const Result<double> wg_size = override_value(key, "wg_size");
  REQUIRE(wg_size.ok());
  CHECK(*wg_size == 64);
  const Result<double> gain = override_value(key, "gain");
  REQUIRE(gain.ok());
  CHECK(*gain == 0.5);
  KernelKey bare = key;
  bare.overrides.clear();
  CHECK_FALSE(override_value(bare, "gain").ok());
  CHECK_FALSE(override_value(key, "absent").ok());
}

TEST_CASE("locate_wgsl_error: positions become file and line, in the kernel and in its parts") {
  // Lines 1 to 3 of the module are its header; the part stands behind line 7 of the kernel.
  const auto located = [](std::string_view message) {
    return locate_wgsl_error(kWgslSample, 3, message);
  };
  CHECK(located("Error while parsing WGSL: :4:7 error: unresolved type 'q'\n") ==
        "Error while parsing WGSL: gpu/testing/wgsl_sample.wgsl:1:7 error: unresolved type 'q'\n");
  CHECK(located(":11:1 note: a\n:14:10 b") ==
        "gpu/testing/sample_index_part.wgsl:1:1 note: a\n"
        "gpu/testing/sample_index_part.wgsl:4:10 b");
  CHECK(located(":16:1 x") == "gpu/testing/wgsl_sample.wgsl:8:1 x");
  CHECK(located(":3:11 x") == "wgsl_sample prelude:3:11 x");
}

TEST_CASE("locate_wgsl_error: what is no position of the module stays as it is") {
  for (const std::string_view text :
       {"", ":", ":7", ":7:", ":x:1", "a:5:1", "at 12:5:1", ":0:1 e", ":9999:1 e",
        ":99999999999999999999:1 e", "@group(0) :: p: Params"}) {
    CHECK(locate_wgsl_error(kWgslSample, 3, text) == text);
  }
  const KernelSource plain{.name = "plain", .text = "a\nb\n"};
  CHECK(locate_wgsl_error(plain, 1, ":3:2 e") == "plain:2:2 e");
}

}  // namespace
}  // namespace ptero::gpu
