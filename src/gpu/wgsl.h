// SPDX-License-Identifier: BSD-3-Clause
// Late specialisation of kernels: a value key says which source, with which prelude, override
// values and features; assemble_wgsl() makes the module text of it. Free of Dawn and of any state;
// every function may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/feature.h"
#include "gpu/kernel_source.h"

namespace ptero::gpu {

// Value of one `override` of a kernel; booleans are 0 and 1.
struct OverrideValue {
  std::string name;
  double value;
  bool operator==(const OverrideValue&) const = default;
};

// Everything that makes one pipeline; equal keys give equal pipelines. What varies goes to the
// latest stage that can express it: Params, then overrides, then the prelude.
struct KernelKey {
  const KernelSource* source = nullptr;    // a generated constant, never owned
  std::string prelude{};                   // declarations put before the text: `alias T = f16;`
  std::vector<OverrideValue> overrides{};  // in any order, but the order is part of the key
  FeatureSet features{};                   // those that the prelude and the text use
  bool operator==(const KernelKey&) const = default;
};

std::size_t hash_value(const KernelKey& key);

// Where the kernel finds its parameters `p`; its text is the same in all cases.
enum class ParamsRoute : std::uint8_t { none, uniform, immediate };

// Bytes that WebGPU guarantees to a kernel that uses immediates.
inline constexpr std::uint32_t kMaxImmediateBytes = 64;

// The route for a kernel on a device with these features: immediates where they can carry the
// parameters, else a uniform buffer at group 1, binding 0.
ParamsRoute params_route(const KernelSource& source, FeatureSet device_features);

struct WgslModule {
  std::string text;          // complete WGSL; equal keys and routes give equal bytes
  std::size_t header_lines;  // lines before KernelSource::text, for locate_wgsl_error()
};

// Writes out enable and requires lines, the prelude, the declaration of p, and the text.
// invalid_argument, with the kernel's name in the sentence, when a value is for an override that
// the kernel lacks, is given twice or does not fit the override's type, when an override without a
// default has no value, or when the route does not fit the parameters.
Result<WgslModule> assemble_wgsl(const KernelKey& key, ParamsRoute route);

// The value that an override takes under this key: the key's, else the literal default.
// invalid_argument when there is neither.
Result<double> override_value(const KernelKey& key, std::string_view name);

// Rewrites the positions (":12:5") in a message of the shader compiler about an assembled module:
// to "ops/softmax/softmax.wgsl:10:5" in the text, to "<name> prelude:2:5" before it, with lines
// counted from the start of the module. Positions behind the end, and all else, stay as they are.
std::string locate_wgsl_error(const KernelSource& source, std::size_t header_lines,
                              std::string_view message);

}  // namespace ptero::gpu

template <>
struct std::hash<ptero::gpu::KernelKey> {
  std::size_t operator()(const ptero::gpu::KernelKey& key) const {
    return ptero::gpu::hash_value(key);
  }
};
