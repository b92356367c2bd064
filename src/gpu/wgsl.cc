// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/wgsl.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace ptero::gpu {
namespace {

std::string_view directive(Feature feature) {
  switch (feature) {
    case Feature::shader_f16:
      return "enable f16;\n";
    case Feature::subgroups:
      return "enable subgroups;\n";
    case Feature::subgroup_matrix:
      return "enable chromium_experimental_subgroup_matrix;\n";
    case Feature::packed_dot:
      return "requires packed_4x8_integer_dot_product;\n";
    case Feature::timestamps:
    case Feature::immediates:  // follows from the route
      return "";
  }
  return "";
}

std::string_view type_name(OverrideType type) {
  switch (type) {
    case OverrideType::boolean:
      return "bool";
    case OverrideType::i32:
      return "i32";
    case OverrideType::u32:
      return "u32";
    case OverrideType::f32:
      return "f32";
    case OverrideType::f16:
      return "f16";
  }
  return "";
}

bool fits(double value, OverrideType type) {
  const bool whole = std::isfinite(value) && value == std::trunc(value);
  switch (type) {
    case OverrideType::boolean:
      return value == 0 || value == 1;
    case OverrideType::i32:
      return whole && value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max();
    case OverrideType::u32:
      return whole && value >= 0 && value <= std::numeric_limits<std::uint32_t>::max();
    case OverrideType::f32:
      return std::abs(value) <= std::numeric_limits<float>::max();
    case OverrideType::f16:
      return std::abs(value) <= 65504;
  }
  return false;
}

const OverrideDecl* find_decl(const KernelSource& source, std::string_view name) {
  const auto found = std::ranges::find(source.overrides, name, &OverrideDecl::name);
  return found == source.overrides.end() ? nullptr : &*found;
}

const OverrideValue* find_value(const KernelKey& key, std::string_view name) {
  const auto found = std::ranges::find(key.overrides, name, &OverrideValue::name);
  return found == key.overrides.end() ? nullptr : &*found;
}

std::string override_names(const KernelSource& source) {
  std::string names;
  for (const OverrideDecl& decl : source.overrides) {
    names += (names.empty() ? "" : ", ");
    names += decl.name;
  }
  return names.empty() ? "none" : names;
}

Status check_overrides(const KernelKey& key) {
  const KernelSource& source = *key.source;
  for (const OverrideValue& value : key.overrides) {
    const OverrideDecl* decl = find_decl(source, value.name);
    PTERO_REJECT_IF(decl == nullptr, invalid_argument,
                    "Override ({}) is not declared by kernel ({}); it declares {}.", value.name,
                    source.name, override_names(source));
    PTERO_REJECT_IF(find_value(key, value.name) != &value, invalid_argument,
                    "Override ({}) of kernel ({}) is given twice.", value.name, source.name);
    PTERO_REJECT_IF(!fits(value.value, decl->type), invalid_argument,
                    "Value ({}) of override ({}) of kernel ({}) does not fit its type ({}).",
                    value.value, value.name, source.name, type_name(decl->type));
  }
  for (const OverrideDecl& decl : source.overrides) {
    PTERO_REJECT_IF(!decl.has_default && find_value(key, decl.name) == nullptr, invalid_argument,
                    "Override ({}) of kernel ({}) has neither a value nor a default.", decl.name,
                    source.name);
  }
  return ok_status();
}

Status check_route(const KernelSource& source, ParamsRoute route) {
  PTERO_REJECT_IF((route == ParamsRoute::none) != (source.params_size == 0), invalid_argument,
                  "Route of parameters ({}) does not fit kernel ({}), whose Params take {} bytes.",
                  route == ParamsRoute::none ? "none" : "uniform or immediate", source.name,
                  source.params_size);
  if (route == ParamsRoute::immediate) {
    PTERO_REJECT_IF(source.params_size > kMaxImmediateBytes, invalid_argument,
                    "Size of Params ({} bytes) of kernel ({}) exceeds that of immediates ({}).",
                    source.params_size, source.name, kMaxImmediateBytes);
    PTERO_REJECT_IF(source.params_have_array, invalid_argument,
                    "Params of kernel ({}) have an array, which immediates cannot hold.",
                    source.name);
  }
  return ok_status();
}

struct Position {
  std::uint32_t line;
  std::string_view line_text;
  std::string_view column_text;  // with its colon
};

// A position of the shader compiler at the start of `text`: ":12:5".
std::optional<Position> parse_position(std::string_view text) {
  const auto digits_after_colon = [&](std::size_t at) -> std::size_t {
    if (at >= text.size() || text[at] != ':') {
      return 0;
    }
    const std::size_t end = text.find_first_not_of("0123456789", at + 1);
    return (end == std::string_view::npos ? text.size() : end) - at - 1;
  };
  const std::size_t line_digits = digits_after_colon(0);
  const std::size_t column_digits = line_digits == 0 ? 0 : digits_after_colon(line_digits + 1);
  if (column_digits == 0) {
    return std::nullopt;
  }
  Position position{0, text.substr(1, line_digits),
                    text.substr(line_digits + 1, column_digits + 1)};
  // A number too large for the type leaves 0, which is no line either.
  std::from_chars(position.line_text.data(), position.line_text.data() + line_digits,
                  position.line);
  return position;
}

// "file:line" of a line of the text; a source without spans (made by hand) goes by its name.
std::string file_position(const KernelSource& source, std::size_t line) {
  const auto after = std::ranges::upper_bound(source.spans, line, {}, &SourceSpan::first_line);
  if (after == source.spans.begin()) {
    return fmt::format("{}:{}", source.name, line);
  }
  const SourceSpan& span = *(after - 1);
  return fmt::format("{}:{}", span.file, span.file_line + (line - span.first_line));
}

}  // namespace

std::size_t hash_value(const KernelKey& key) {
  std::size_t seed = key.source == nullptr ? 0 : static_cast<std::size_t>(key.source->hash);
  const auto mix = [&seed](std::size_t value) {
    seed ^= value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2);
  };
  mix(std::hash<std::string>{}(key.prelude));
  mix(key.features.bits());
  for (const OverrideValue& value : key.overrides) {
    mix(std::hash<std::string>{}(value.name));
    mix(std::hash<double>{}(value.value));
  }
  return seed;
}

ParamsRoute params_route(const KernelSource& source, FeatureSet device_features) {
  if (source.params_size == 0) {
    return ParamsRoute::none;
  }
  const bool fits_immediates =
      source.params_size <= kMaxImmediateBytes && !source.params_have_array;
  return fits_immediates && device_features.contains(Feature::immediates) ? ParamsRoute::immediate
                                                                          : ParamsRoute::uniform;
}

Result<WgslModule> assemble_wgsl(const KernelKey& key, ParamsRoute route) {
  PTERO_REJECT_IF(key.source == nullptr, invalid_argument, "Kernel key has no source.");
  PTERO_RETURN_IF_ERROR(check_overrides(key));
  PTERO_RETURN_IF_ERROR(check_route(*key.source, route));

  std::string text;
  text.reserve(key.prelude.size() + key.source->text.size() + 256);
  for (const Feature feature : key.features) {
    text += directive(feature);
  }
  if (route == ParamsRoute::immediate) {
    text += "requires immediate_address_space;\n";
  }
  text += key.prelude;
  if (!key.prelude.empty() && !key.prelude.ends_with('\n')) {
    text += '\n';
  }
  if (route == ParamsRoute::immediate) {
    text += "var<immediate> p: Params;\n";
  } else if (route == ParamsRoute::uniform) {
    text += "@group(1) @binding(0) var<uniform> p: Params;\n";
  }
  const auto header_lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  text += key.source->text;
  return WgslModule{std::move(text), header_lines};
}

Result<double> override_value(const KernelKey& key, std::string_view name) {
  PTERO_REJECT_IF(key.source == nullptr, invalid_argument, "Kernel key has no source.");
  if (const OverrideValue* value = find_value(key, name)) {
    return value->value;
  }
  const OverrideDecl* decl = find_decl(*key.source, name);
  PTERO_REJECT_IF(decl == nullptr || std::isnan(decl->default_value), invalid_argument,
                  "Override ({}) of kernel ({}) has neither a value nor a literal default.", name,
                  key.source->name);
  return decl->default_value;
}

std::string locate_wgsl_error(const KernelSource& source, std::size_t header_lines,
                              std::string_view message) {
  const auto text_lines = static_cast<std::size_t>(std::ranges::count(source.text, '\n'));
  std::string located;
  for (std::size_t at = 0; at < message.size();) {
    // A position that already has a file ("a.wgsl:3:1") or is part of a number is not ours.
    const bool starts_word = at == 0 || message[at - 1] == ' ' || message[at - 1] == '\n';
    const std::optional<Position> position =
        starts_word ? parse_position(message.substr(at)) : std::nullopt;
    if (!position || position->line == 0 || position->line > header_lines + text_lines) {
      located += message[at++];
      continue;
    }
    located += position->line <= header_lines
                   ? fmt::format("{} prelude:{}", source.name, position->line)
                   : file_position(source, position->line - header_lines);
    located += position->column_text;
    at += 1 + position->line_text.size() + position->column_text.size();
  }
  return located;
}

}  // namespace ptero::gpu
