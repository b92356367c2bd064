// SPDX-License-Identifier: BSD-3-Clause
// Variants: one WGSL source for several element types, widths of a load and ways to add up. What
// differs is declared in a prelude that is made here, from a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gpu/feature.h"
#include "graph/op_call.h"
#include "pte/graph.h"

namespace ptero::ops {

// Its name is "f32", "f16x4", "f32x4+subgroups": the element type, the width unless it is 1, and
// what else is used.
struct Variant {
  pte::GraphDtype element = pte::GraphDtype::float32;  // or float16
  uint32_t width = 1;                                  // elements of a load: 1, 2 or 4
  bool subgroups = false;  // sums over threads are made in subgroups first

  bool operator==(const Variant&) const = default;
};

// What the text of a kernel finds declared:
//   T, an element; V, a load of kWidth elements; W, the same in f32; kSubgroups;
//   total(W), the sum of its components;
//   subgroup_total(f32) and subgroup_lanes(), the sum over a subgroup and its size; without
//   subgroups that of one thread.
struct VariantText {
  std::string prelude;
  gpu::FeatureSet features;  // that it uses
};

// Equal variants give equal text. invalid_argument, naming it, for one that there is not.
Result<VariantText> make_variant(const Variant& variant);

// All there are.
std::span<const Variant> variants();

std::string name_of(const Variant& variant);
// invalid_argument, with the names there are in the sentence.
Result<Variant> parse_variant(std::string_view name);

// The widest loads that rows of `length` elements are whole numbers of, for `tensor`'s elements,
// and subgroups where the device has them. Code unsupported for elements that are no floats.
Result<Variant> choose_variant(const graph::OpCall& op, const graph::TensorRef& tensor,
                               uint64_t length);

}  // namespace ptero::ops
