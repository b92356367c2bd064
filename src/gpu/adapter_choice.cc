// SPDX-License-Identifier: BSD-3-Clause
// What can be said about adapters from their descriptions alone, without a GPU.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "gpu/adapter.h"

namespace ptero::gpu {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string list_for_error(const std::vector<AdapterInfo>& adapters) {
  std::string text;
  for (size_t i = 0; i < adapters.size(); ++i) {
    text += fmt::format("{}{}: {} ({})", i == 0 ? "" : ", ", i, adapters[i].name,
                        adapter_type_name(adapters[i].type));
  }
  return text;
}

int preference(AdapterType type) {
  switch (type) {
    case AdapterType::discrete:
      return 0;
    case AdapterType::integrated:
      return 1;
    case AdapterType::unknown:
      return 2;
    case AdapterType::cpu:
      return 3;
  }
  return 3;
}

}  // namespace

std::string_view adapter_type_name(AdapterType type) {
  switch (type) {
    case AdapterType::discrete:
      return "discrete";
    case AdapterType::integrated:
      return "integrated";
    case AdapterType::cpu:
      return "cpu";
    case AdapterType::unknown:
      break;
  }
  return "unknown";
}

std::string_view matrix_type_name(MatrixType type) {
  constexpr std::string_view kNames[] = {"f16", "f32", "i8", "u8", "i32", "u32"};
  return kNames[static_cast<size_t>(type)];
}

Result<size_t> choose_adapter(const std::vector<AdapterInfo>& adapters, std::string_view wanted) {
  PTERO_REJECT_IF(adapters.empty(), unsupported,
                  "This machine offers no WebGPU adapter; install a Vulkan driver for its GPU, or "
                  "Mesa's software driver (Debian: mesa-vulkan-drivers).");
  if (wanted.empty()) {
    const auto best = std::min_element(adapters.begin(), adapters.end(),
                                       [](const AdapterInfo& a, const AdapterInfo& b) {
                                         return preference(a.type) < preference(b.type);
                                       });
    return static_cast<size_t>(best - adapters.begin());
  }
  size_t index = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
  if (error == std::errc() && end == wanted.data() + wanted.size()) {
    PTERO_REJECT_IF(index >= adapters.size(), invalid_argument,
                    "Adapter index ({}) is not below the number of adapters ({}): {}.", index,
                    adapters.size(), list_for_error(adapters));
    return index;
  }
  const std::string part = lower(wanted);
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (part == adapter_type_name(adapters[i].type) ||
        lower(adapters[i].name).find(part) != std::string::npos ||
        lower(adapters[i].driver).find(part) != std::string::npos) {
      return i;
    }
  }
  return make_error(ErrorCode::invalid_argument,
                    "No adapter's name, driver or type matches ({}); this machine has {}.", wanted,
                    list_for_error(adapters));
}

std::vector<FastPath> fast_paths(const AdapterInfo& info, FeatureSet disabled) {
  const auto missing = [&](Feature feature) -> std::string {
    if (!info.features.contains(feature)) {
      return fmt::format("the adapter does not offer {}", feature_name(feature));
    }
    if (disabled.contains(feature)) {
      return fmt::format("{} is switched off", feature_name(feature));
    }
    return {};
  };
  const auto first_missing = [&](std::initializer_list<Feature> features) -> std::string {
    for (const Feature feature : features) {
      if (std::string reason = missing(feature); !reason.empty()) {
        return reason;
      }
    }
    return {};
  };
  const auto has_shape = [&](MatrixType input, MatrixType result) {
    return std::any_of(
        info.matrix_shapes.begin(), info.matrix_shapes.end(),
        [&](const MatrixShape& shape) { return shape.input == input && shape.result == result; });
  };

  std::vector<FastPath> paths;
  paths.push_back({"half precision", "halves the bytes of activations and cache",
                   missing(Feature::shader_f16)});
  paths.push_back({"subgroup reductions", "sums across threads without workgroup memory",
                   missing(Feature::subgroups)});
  std::string matrix =
      first_missing({Feature::subgroup_matrix, Feature::shader_f16, Feature::subgroups});
  if (matrix.empty() && !has_shape(MatrixType::f16, MatrixType::f32)) {
    matrix = "the adapter's matrices do not multiply f16 into f32";
  }
  paths.push_back({"matrix units", "prefill GEMM, f16 in and f32 out", std::move(matrix)});
  paths.push_back({"packed dot products", "8-bit activations times 4- and 8-bit weights",
                   missing(Feature::packed_dot)});
  paths.push_back({"immediates", "parameters without a buffer; otherwise a uniform ring",
                   missing(Feature::immediates)});
  paths.push_back(
      {"timestamps", "GPU time of each kernel when profiling", missing(Feature::timestamps)});
  return paths;
}

}  // namespace ptero::gpu
