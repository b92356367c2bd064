// SPDX-License-Identifier: BSD-3-Clause
// Adapters: what GPUs (or software stand-ins) this machine offers and what each allows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "gpu/feature.h"

namespace ptero::gpu {

namespace internal {
struct AdapterState;
struct InstanceState;
}  // namespace internal

enum class AdapterType { discrete, integrated, cpu, unknown };
std::string_view adapter_type_name(AdapterType type);

// The limits that Ptero's planning looks at. Bytes unless named otherwise.
struct Limits {
  uint64_t max_buffer_size = 0;
  uint64_t max_storage_binding_size = 0;
  uint32_t max_storage_buffers_per_stage = 0;
  uint32_t min_storage_offset_alignment = 0;
  uint32_t min_uniform_offset_alignment = 0;
  uint32_t max_workgroup_storage_size = 0;
  uint32_t max_invocations_per_workgroup = 0;
  uint32_t max_workgroup_size_x = 0;
  uint32_t max_workgroups_per_dimension = 0;
  uint32_t max_immediate_size = 0;  // 0: the adapter has no immediates

  bool operator==(const Limits&) const = default;
};

enum class MatrixType { f16, f32, i8, u8, i32, u32 };
std::string_view matrix_type_name(MatrixType type);

// One shape that a subgroup can multiply: [m, k] of `input` times [k, n] of `input`.
struct MatrixShape {
  MatrixType input;
  MatrixType result;
  uint32_t m, n, k;

  bool operator==(const MatrixShape&) const = default;
};

struct AdapterInfo {
  std::string name;  // "NVIDIA H200", "llvmpipe (LLVM 21.1.8, 256 bits)"
  std::string vendor;
  std::string driver;   // the driver's own description
  std::string backend;  // "Vulkan", "Metal", "D3D12"
  AdapterType type = AdapterType::unknown;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint32_t subgroup_min_size = 0;  // 0: not reported
  uint32_t subgroup_max_size = 0;
  Limits limits;
  FeatureSet features;  // what Ptero could switch on
  std::vector<MatrixShape> matrix_shapes;

  bool is_software() const { return type == AdapterType::cpu; }
};

// A faster way of computing that needs more than plain WebGPU. `missing` is empty when the
// adapter (with the user's off-switches) allows it, else a sentence that says why not.
struct FastPath {
  std::string_view name;
  std::string_view purpose;
  std::string missing;

  bool allowed() const { return missing.empty(); }
};

// `disabled` are the user's off-switches.
std::vector<FastPath> fast_paths(const AdapterInfo& info, FeatureSet disabled);

// A connection to WebGPU. Adapters and devices keep it alive. Copyable handle.
class Instance {
 public:
  // `log` receives warnings of the implementation; it may be empty.
  static Result<Instance> create(LogCallback log = {});

  // The version of the WebGPU implementation this program was built with.
  static std::string_view implementation_version();

  internal::InstanceState& state() const { return *state_; }
  std::shared_ptr<internal::InstanceState> share() const { return state_; }

 private:
  explicit Instance(std::shared_ptr<internal::InstanceState> state) : state_(std::move(state)) {}
  std::shared_ptr<internal::InstanceState> state_;
};

// One adapter of an instance. Copyable handle.
class Adapter {
 public:
  const AdapterInfo& info() const;

  explicit Adapter(std::shared_ptr<const internal::AdapterState> state)
      : state_(std::move(state)) {}
  const internal::AdapterState& state() const { return *state_; }

 private:
  std::shared_ptr<const internal::AdapterState> state_;
};

// Every adapter, in the driver's order; empty when there is none. Natively this does not wait.
Result<std::vector<Adapter>> list_adapters(const Instance& instance);

// Picks one. `wanted` is an index into `adapters`, a part of a name or driver (any case), or a
// type ("discrete", "integrated", "cpu"); empty picks discrete before integrated before unknown
// before cpu. Errors list what there is.
Result<Adapter> choose_adapter(const std::vector<Adapter>& adapters, std::string_view wanted);
// The same rule on plain descriptions: the index chosen.
Result<size_t> choose_adapter(const std::vector<AdapterInfo>& adapters, std::string_view wanted);

}  // namespace ptero::gpu
