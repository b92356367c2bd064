// SPDX-License-Identifier: BSD-3-Clause
// What a .wgsl file says about itself, as tools/embed_wgsl.py writes it into <file>.wgsl.h at build
// time. Everything here is constant data of the program: it lives for ever and needs no GPU.
// docs/kernels.md says how a kernel file is written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ptero::gpu {

// Binding i of group 0 is the i-th element of KernelSource::bindings: a storage buffer.
struct BindingDecl {
  std::string_view name;
  bool writes;  // read_write; otherwise read
};

// Lines of KernelSource::text from first_line on come from `file` (a path below src/), the first of
// them from its line file_line. Line numbers start at 1.
struct SourceSpan {
  std::uint32_t first_line;
  std::string_view file;
  std::uint32_t file_line;
};

enum class OverrideType : std::uint8_t { boolean, i32, u32, f32, f16 };

struct OverrideDecl {
  std::string_view name;
  OverrideType type;
  bool has_default;      // otherwise every key must give a value
  double default_value;  // NaN without a default, and for one that is not a literal
};

struct KernelSource {
  std::string_view name;  // file stem: GPU label, profiler row, error text
  // The kernel with its include parts, WITHOUT the `var<uniform> p` line, which assemble_wgsl()
  // adds as a uniform or as an immediate. Not a complete module: types come from the prelude.
  std::string_view text;
  std::span<const BindingDecl> bindings{};
  std::uint32_t params_size = 0;   // bytes of `struct Params`; 0 when the kernel has none
  bool params_have_array = false;  // WGSL allows no arrays in immediates
  std::span<const SourceSpan> spans{};
  std::span<const OverrideDecl> overrides{};
  std::uint64_t hash = 0;  // of text
};

// Padding inside a generated parameter struct. It is zero and takes no value, so a positional
// initialiser that forgets it does not compile; name the members instead.
template <std::size_t kBytes>
class KernelPadding {
 public:
  constexpr KernelPadding() = default;
  constexpr bool operator==(const KernelPadding&) const = default;

 private:
  std::array<std::byte, kBytes> zero_{};
};

}  // namespace ptero::gpu
