// SPDX-License-Identifier: BSD-3-Clause
// A step: the dispatches and copies of one call, recorded once and submitted any number of times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "base/result.h"
#include "gpu/device.h"

namespace ptero::gpu {

// Workgroups. A dispatch with a zero in it does nothing.
struct Grid {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;

  bool operator==(const Grid&) const = default;
};

// Commands run in the order recorded, each seeing what the ones before it wrote: WebGPU orders
// dispatches inside a pass, so there are no barriers to place. Needs no device to record; keeps
// its kernels and bind groups alive, not their buffers.
class Step {
 public:
  Step();
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  // `params` are the bytes of the kernel's Params struct, exactly. Returns the command's index.
  Result<size_t> dispatch(const Kernel& kernel, const BindGroup& bindings,
                          std::span<const std::byte> params, Grid grid);
  template <typename Params>
  Result<size_t> dispatch(const Kernel& kernel, const BindGroup& bindings, const Params& params,
                          Grid grid) {
    static_assert(std::is_trivially_copyable_v<Params>);
    if constexpr (requires { Params::kKernel; }) {  // generated from a kernel's own file
      PTERO_REJECT_IF(kernel.entry() != nullptr && Params::kKernel != kernel.name(),
                      invalid_argument, "Kernel ({}) was given the parameters of kernel ({}).",
                      kernel.name(), Params::kKernel);
    }
    return dispatch(kernel, bindings, std::as_bytes(std::span(&params, 1)), grid);
  }

  // Offsets and size are multiples of 4; the buffers differ.
  Result<size_t> copy(const Buffer& source, uint64_t source_offset, const Buffer& target,
                      uint64_t target_offset, uint64_t bytes);

  // Replace what changes between calls of one plan, leaving pipelines and bindings alone.
  Status set_params(size_t command, std::span<const std::byte> params);
  Status set_grid(size_t command, Grid grid);

  size_t size() const;
  void clear();

  // Runs the commands backwards from now on. Only for tests that show that order matters.
  void reverse_for_test();

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptero::gpu
