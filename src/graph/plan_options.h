// SPDX-License-Identifier: BSD-3-Clause
// What a user may ask of planning: kernels by name, to compare them, and trades of accuracy for
// speed or memory that nobody gets without asking. Operators and passes see them beside the facts
// of the device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/feature.h"

namespace ptero::graph {

struct PlanOptions {
  // A name of the list below; what does not serve a shape or a device gives way to what does.
  std::string q4_gemm = "auto";
  std::string sdpa_route = "auto";
  // Not set: as the program says, or off (llm/model.h).
  std::optional<bool> enable_f16_gemm;
  bool enable_f16_accumulate_gemm = false;
  bool enable_f16_kv_cache = false;
  bool enable_fusion = true;            // rewrites that make one operator of several
  bool scratch_pool = true;             // scratch of one operator serves later ones, too
  std::string adapter_routes = "auto";  // or of another kind of adapter: "software", "gpu"
  uint32_t sdpa_query_tile = 0;         // of attention in tiles; 0: as it comes
  // Positions of the KV caches; 0: as the program has them. Not a key of the list below: whoever
  // runs a language model sets it (llm::ModelSource).
  uint32_t context = 0;

  bool operator==(const PlanOptions&) const = default;
};

struct PlanOptionInfo {
  std::string_view key;
  std::vector<std::string_view> values;  // those it takes, the default first
  std::string_view help;
};
std::span<const PlanOptionInfo> plan_option_list();

// "key=value". Errors: invalid_argument, with the keys or the values there are in the sentence.
Status set(PlanOptions& options, std::string_view assignment);

// Variables of the environment that ask for something: WEBGPU_NO_SCRATCH_POOL=1 is
// scratch_pool=false. For front ends; what is set by name afterwards wins.
void set_from_environment(PlanOptions& options);

// A sentence for each option that is on and that a device with these features cannot serve.
std::vector<std::string> unserved(const PlanOptions& options, gpu::FeatureSet features);

// One line an option, for --help.
std::string plan_option_help();

}  // namespace ptero::graph
