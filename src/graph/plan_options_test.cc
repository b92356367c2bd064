// SPDX-License-Identifier: BSD-3-Clause
#include "graph/plan_options.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace ptero::graph {
namespace {

TEST_CASE("plan options: the first value of each is the default") {
  PlanOptions options;
  for (const PlanOptionInfo& info : plan_option_list()) {
    CHECK(set(options, std::string(info.key) + "=" + std::string(info.values.front())).ok());
  }
  CHECK(options == PlanOptions{});
}

TEST_CASE("plan options: every other value changes them") {
  for (const PlanOptionInfo& info : plan_option_list()) {
    for (size_t i = 1; i < info.values.size(); ++i) {
      PlanOptions options;
      CAPTURE(std::string(info.key));
      CHECK(set(options, std::string(info.key) + "=" + std::string(info.values[i])).ok());
      CHECK_FALSE(options == PlanOptions{});
    }
  }
}

TEST_CASE("plan options: each key sets its own") {
  PlanOptions options;
  CHECK(set(options, "q4_gemm=steel_f16_packed").ok());
  CHECK(options.q4_gemm == "steel_f16_packed");
  CHECK(set(options, "sdpa_route=materialized").ok());
  CHECK(options.sdpa_route == "materialized");
  CHECK_FALSE(options.enable_f16_gemm.has_value());
  CHECK(set(options, "enable_f16_gemm=false").ok());
  CHECK(options.enable_f16_gemm == false);
  CHECK(set(options, "enable_f16_gemm").ok());
  CHECK(options.enable_f16_gemm == true);
  CHECK(set(options, "enable_f16_gemm=auto").ok());
  CHECK_FALSE(options.enable_f16_gemm.has_value());
  CHECK(set(options, "enable_f16_accumulate_gemm").ok());
  CHECK(options.enable_f16_accumulate_gemm);
  CHECK(set(options, "enable_f16_kv_cache=true").ok());
  CHECK(options.enable_f16_kv_cache);
  CHECK(set(options, "enable_f16_kv_cache=false").ok());
  CHECK_FALSE(options.enable_f16_kv_cache);
  CHECK(set(options, "sdpa_query_tile=32").ok());
  CHECK(options.sdpa_query_tile == 32);
}

TEST_CASE("plan options: what is not known is refused with what is") {
  PlanOptions options;
  const auto error = [&](std::string_view text) {
    const Status status = set(options, text);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code() == ErrorCode::invalid_argument);
    return status.error().message();
  };
  CHECK(error("q4_gem=tile") ==
        "There is no option (q4_gem); there are q4_gemm, sdpa_route, enable_f16_gemm, "
        "enable_f16_accumulate_gemm, enable_f16_kv_cache, enable_fusion, scratch_pool, "
        "adapter_routes, sdpa_query_tile.");
  CHECK(error("sdpa_query_tile=8") == "Value (8) of option sdpa_query_tile is none of 0, 16, 32.");
  CHECK(error("q4_gemm").find("steel_f16_accumulate") != std::string::npos);
  CHECK(error("enable_f16_kv_cache=1").find("false, true") != std::string::npos);
  CHECK(options == PlanOptions{});
}

TEST_CASE("plan options: the environment turns the pool of scratch off, a name turns it on again") {
  const auto of_environment = [](const char* value) {
    value != nullptr ? setenv("WEBGPU_NO_SCRATCH_POOL", value, 1)
                     : unsetenv("WEBGPU_NO_SCRATCH_POOL");
    PlanOptions options;
    set_from_environment(options);
    return options;
  };
  CHECK_FALSE(of_environment("1").scratch_pool);
  CHECK(of_environment("0").scratch_pool);
  CHECK(of_environment("").scratch_pool);
  PlanOptions options = of_environment("1");
  CHECK(set(options, "scratch_pool=true").ok());
  CHECK(options.scratch_pool);
  CHECK(of_environment(nullptr) == PlanOptions{});
}

TEST_CASE("plan options: what a device cannot do is said") {
  PlanOptions options;
  CHECK(unserved(options, {}).empty());
  options.enable_f16_kv_cache = true;
  options.enable_f16_gemm = false;
  CHECK(unserved(options, {}).size() == 1);
  options.enable_f16_gemm = true;
  options.enable_f16_accumulate_gemm = true;
  const std::vector<std::string> sentences = unserved(options, {});
  REQUIRE(sentences.size() == 3);
  CHECK(sentences[0].find("enable_f16_kv_cache") != std::string::npos);
  CHECK(sentences[1].find("enable_f16_gemm") != std::string::npos);
  CHECK(sentences[2].find("enable_f16_accumulate_gemm") != std::string::npos);
  CHECK(unserved(options, {gpu::Feature::shader_f16}).size() == 1);  // no matrix units
  CHECK(unserved(options, {gpu::Feature::shader_f16, gpu::Feature::subgroup_matrix}).empty());
}

TEST_CASE("plan options: help has a line for each") {
  const std::string help = plan_option_help();
  for (const PlanOptionInfo& info : plan_option_list()) {
    CHECK(help.find(std::string(info.key) + "=" + std::string(info.values.front()) + "|") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace ptero::graph
