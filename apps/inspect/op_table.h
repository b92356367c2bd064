// SPDX-License-Identifier: BSD-3-Clause
// What inspect knows about an operator by its name alone, for grouping and colours. Which operators
// a build can run is not said here: that comes from Capabilities (report.h).
#pragma once

#include <string_view>

namespace ptero::inspect {

enum class Family {
  attention,
  rotary,
  linear,
  embedding,
  norm,
  elementwise,
  reduction,
  gather,
  spatial,
  quantize,
  training,
  layout,  // moves bytes or only renames dimensions
  fill,
  scalar,   // integer arithmetic on sizes and positions; never reaches the GPU
  prepack,  // once at load
  unknown,
};

struct FamilyInfo {
  std::string_view name;
  std::string_view fill;  // colours of a drawing, "#rrggbb"
  std::string_view border;
};
FamilyInfo family_info(Family family);

// GPU dispatches of one call when nothing is fused. None: the call only computes a size, renames
// dimensions or runs once at load.
enum class Cost { none, one, two, one_per_input, one_per_output };

struct OpInfo {
  Family family = Family::unknown;
  Cost cost = Cost::one;
  bool is_view = false;  // the output has the bytes of the input
};

// `name` as in the graph: "et_vk.rms_norm.default".
OpInfo op_info(std::string_view name);

// "et_vk.rms_norm.default" -> "rms_norm", "aten.add.Tensor" -> "add".
std::string_view short_op_name(std::string_view name);

}  // namespace ptero::inspect
