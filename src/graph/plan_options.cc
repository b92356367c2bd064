// SPDX-License-Identifier: BSD-3-Clause
#include "graph/plan_options.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ptero::graph {
namespace {

constexpr std::string_view kOff = "false";
constexpr std::string_view kOn = "true";
constexpr std::string_view kAuto = "auto";

}  // namespace

std::span<const PlanOptionInfo> plan_option_list() {
  static const std::vector<PlanOptionInfo> list = {
      {"q4_gemm",
       {"auto", "any", "column", "tile", "steel", "steel_f16", "steel_f16_packed",
        "steel_f16_accumulate", "matrix"},
       "kernel of 4-bit linear layers with many rows"},
      {"sdpa_route",
       {"auto", "rows", "split", "tiles", "matrix", "materialized"},
       "kernels of attention"},
      {"enable_f16_gemm",
       {kAuto, kOff, kOn},
       "4-bit linear layers and attention with many rows of float32 multiply in f16 by matrix "
       "units; auto: as the program says, else false"},
      {"enable_f16_accumulate_gemm",
       {kOff, kOn},
       "4-bit linear layers with many rows add up in f16: faster, less accurate"},
      {"enable_f16_kv_cache",
       {kOff, kOn},
       "KV caches in f16 where the device has shader-f16: half the memory, less accurate"},
      {"enable_fusion",
       {kOn, kOff},
       "operators that follow each other become one where there is a kernel for it"},
      {"scratch_pool",
       {kOn, kOff},
       "scratch of one operator serves later ones, too; WEBGPU_NO_SCRATCH_POOL=1 turns it off"},
      {"adapter_routes",
       {"auto", "software", "gpu"},
       "kernels of another kind of adapter than the one there is (see `ptero devices`)"},
      {"sdpa_query_tile",
       {"0", "16", "32"},
       "queries of a tile of attention (sdpa_route=tiles); 0: 32"},
  };
  return list;
}

Status set(PlanOptions& options, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view key = assignment.substr(0, equals);
  const auto list = plan_option_list();
  const auto info = std::find_if(list.begin(), list.end(),
                                 [&](const PlanOptionInfo& each) { return each.key == key; });
  if (info == list.end()) {
    std::vector<std::string_view> keys;
    for (const PlanOptionInfo& each : list) {
      keys.push_back(each.key);
    }
    return make_error(ErrorCode::invalid_argument, "There is no option ({}); there are {}.", key,
                      fmt::join(keys, ", "));
  }
  // A flag alone is one that is set.
  const bool flag = info->values.back() == kOn || info->values.back() == kOff;
  const std::string_view value = equals != std::string_view::npos ? assignment.substr(equals + 1)
                                 : flag                           ? kOn
                                                                  : std::string_view();
  PTERO_REJECT_IF(std::find(info->values.begin(), info->values.end(), value) == info->values.end(),
                  invalid_argument, "Value ({}) of option {} is none of {}.", value, key,
                  fmt::join(info->values, ", "));
  if (key == "q4_gemm") {
    options.q4_gemm = value;
  } else if (key == "sdpa_route") {
    options.sdpa_route = value;
  } else if (key == "enable_f16_gemm") {
    options.enable_f16_gemm.reset();
    if (value != kAuto) {
      options.enable_f16_gemm = value == kOn;
    }
  } else if (key == "enable_f16_accumulate_gemm") {
    options.enable_f16_accumulate_gemm = value == kOn;
  } else if (key == "enable_f16_kv_cache") {
    options.enable_f16_kv_cache = value == kOn;
  } else if (key == "enable_fusion") {
    options.enable_fusion = value == kOn;
  } else if (key == "scratch_pool") {
    options.scratch_pool = value == kOn;
  } else if (key == "adapter_routes") {
    options.adapter_routes = value;
  } else {
    options.sdpa_query_tile = value == "16" ? 16 : value == "32" ? 32 : 0;
  }
  return ok_status();
}

void set_from_environment(PlanOptions& options) {
  const char* const off = std::getenv("WEBGPU_NO_SCRATCH_POOL");
  if (off != nullptr && std::string_view(off) != "" && std::string_view(off) != "0") {
    options.scratch_pool = false;
  }
}

std::vector<std::string> unserved(const PlanOptions& options, gpu::FeatureSet features) {
  std::vector<std::string> sentences;
  const bool half = features.contains(gpu::Feature::shader_f16);
  if (options.enable_f16_kv_cache && !half) {
    sentences.emplace_back(
        "Option enable_f16_kv_cache does nothing here: the device has no shader-f16, so KV caches "
        "stay float32.");
  }
  if (options.enable_f16_gemm.value_or(false) &&
      !(half && features.contains(gpu::Feature::subgroup_matrix))) {
    sentences.emplace_back(
        "Option enable_f16_gemm does nothing here: the device has no subgroup-matrix or no "
        "shader-f16, so products stay float32.");
  }
  if (options.enable_f16_accumulate_gemm && !half) {
    sentences.emplace_back(
        "Option enable_f16_accumulate_gemm does nothing here: the device has no shader-f16, so "
        "sums stay float32.");
  }
  return sentences;
}

std::string plan_option_help() {
  std::string text;
  for (const PlanOptionInfo& info : plan_option_list()) {
    text += fmt::format("{}={}: {}\n", info.key, fmt::join(info.values, "|"), info.help);
  }
  return text;
}

}  // namespace ptero::graph
