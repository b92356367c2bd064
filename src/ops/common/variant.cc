// SPDX-License-Identifier: BSD-3-Clause
#include "ops/common/variant.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace ptero::ops {
namespace {

using pte::GraphDtype;

std::vector<Variant> make_list() {
  std::vector<Variant> list;
  for (const bool subgroups : {false, true}) {
    for (const GraphDtype element : {GraphDtype::float32, GraphDtype::float16}) {
      for (const uint32_t width : {1, 2, 4}) {
        list.push_back({element, width, subgroups});
      }
    }
  }
  return list;
}

std::string vector_of(std::string_view element, uint32_t width) {
  return width == 1 ? std::string(element) : fmt::format("vec{}<{}>", width, element);
}

constexpr std::string_view kWithSubgroups = R"(const kSubgroups = true;
fn subgroup_total(value: f32) -> f32 { return subgroupAdd(value); }
fn subgroup_lanes() -> u32 { return subgroupAdd(1u); }
)";
constexpr std::string_view kWithoutSubgroups = R"(const kSubgroups = false;
fn subgroup_total(value: f32) -> f32 { return value; }
fn subgroup_lanes() -> u32 { return 1u; }
)";

}  // namespace

std::span<const Variant> variants() {
  static const std::vector<Variant> list = make_list();
  return list;
}

std::string name_of(const Variant& variant) {
  const std::string_view element = variant.element == GraphDtype::float32 ? "f32"
                                   : variant.element == GraphDtype::float16
                                       ? "f16"
                                       : pte::name_of(variant.element);
  return fmt::format("{}{}{}", element, variant.width == 1 ? "" : fmt::format("x{}", variant.width),
                     variant.subgroups ? "+subgroups" : "");
}

Result<Variant> parse_variant(std::string_view name) {
  std::string names;
  for (const Variant& variant : variants()) {
    const std::string its = name_of(variant);
    if (its == name) {
      return variant;
    }
    names += (names.empty() ? "" : ", ") + its;
  }
  return make_error(ErrorCode::invalid_argument, "There is no variant ({}); there are {}.", name,
                    names);
}

Result<VariantText> make_variant(const Variant& variant) {
  const auto list = variants();
  if (std::find(list.begin(), list.end(), variant) == list.end()) {
    return parse_variant(name_of(variant)).error();
  }
  const bool half = variant.element == GraphDtype::float16;
  const std::string_view element = half ? "f16" : "f32";
  VariantText text;
  text.prelude = fmt::format("alias T = {};\nalias V = {};\nalias W = {};\nconst kWidth = {}u;\n",
                             element, vector_of(element, variant.width),
                             vector_of("f32", variant.width), variant.width);
  text.prelude += variant.width == 1
                      ? "fn total(sum: W) -> f32 { return sum; }\n"
                      : fmt::format("fn total(sum: W) -> f32 {{ return dot(sum, W(1.0)); }}\n");
  text.prelude += variant.subgroups ? kWithSubgroups : kWithoutSubgroups;
  if (half) {
    text.features.insert(gpu::Feature::shader_f16);
  }
  if (variant.subgroups) {
    text.features.insert(gpu::Feature::subgroups);
  }
  return text;
}

Result<Variant> choose_variant(const graph::OpCall& op, const graph::TensorRef& tensor,
                               uint64_t length) {
  PTERO_REJECT_IF(!tensor.is_float(), unsupported,
                  "Element type ({}) of tensor {} has no kernel in this operator.",
                  pte::name_of(tensor.dtype), tensor.id);
  Variant variant{.element = tensor.dtype, .width = 4};
  while (length % variant.width != 0) {
    variant.width /= 2;
  }
  variant.subgroups = op.device().features.contains(gpu::Feature::subgroups);
  return variant;
}

}  // namespace ptero::ops
