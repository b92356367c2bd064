// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/adapter.h"

#include <optional>

#include "gpu/internal/instance_state.h"

namespace ptero::gpu {
namespace {

std::string backend_name(wgpu::BackendType type) {
  switch (type) {
    case wgpu::BackendType::Vulkan:
      return "Vulkan";
    case wgpu::BackendType::Metal:
      return "Metal";
    case wgpu::BackendType::D3D12:
      return "D3D12";
    case wgpu::BackendType::D3D11:
      return "D3D11";
    case wgpu::BackendType::OpenGL:
      return "OpenGL";
    case wgpu::BackendType::OpenGLES:
      return "OpenGL ES";
    case wgpu::BackendType::WebGPU:
      return "WebGPU";
    default:
      return "unknown";
  }
}

AdapterType convert_type(wgpu::AdapterType type) {
  switch (type) {
    case wgpu::AdapterType::DiscreteGPU:
      return AdapterType::discrete;
    case wgpu::AdapterType::IntegratedGPU:
      return AdapterType::integrated;
    case wgpu::AdapterType::CPU:
      return AdapterType::cpu;
    case wgpu::AdapterType::Unknown:
      break;
  }
  return AdapterType::unknown;
}

std::optional<MatrixType> convert_matrix_type(wgpu::SubgroupMatrixComponentType type) {
  switch (type) {
    case wgpu::SubgroupMatrixComponentType::F16:
      return MatrixType::f16;
    case wgpu::SubgroupMatrixComponentType::F32:
      return MatrixType::f32;
    case wgpu::SubgroupMatrixComponentType::I8:
      return MatrixType::i8;
    case wgpu::SubgroupMatrixComponentType::U8:
      return MatrixType::u8;
    case wgpu::SubgroupMatrixComponentType::I32:
      return MatrixType::i32;
    case wgpu::SubgroupMatrixComponentType::U32:
      return MatrixType::u32;
  }
  return std::nullopt;  // a type of a newer Dawn
}

}  // namespace

Result<Instance> Instance::create(LogCallback log) {
  PTERO_ASSIGN_OR_RETURN(auto state, internal::create_instance(std::move(log)));
  return Instance(std::move(state));
}

const AdapterInfo& Adapter::info() const {
  return state_->info;
}

Result<std::vector<Adapter>> list_adapters(const Instance& instance) {
  std::vector<Adapter> adapters;
  for (const wgpu::Adapter& handle : internal::enumerate_adapters(instance.state())) {
    adapters.emplace_back(std::make_shared<internal::AdapterState>(internal::AdapterState{
        instance.share(), adapters.size(), internal::describe_adapter(instance.state(), handle)}));
  }
  return adapters;
}

Result<Adapter> choose_adapter(const std::vector<Adapter>& adapters, std::string_view wanted) {
  std::vector<AdapterInfo> infos;
  for (const Adapter& adapter : adapters) {
    infos.push_back(adapter.info());
  }
  PTERO_ASSIGN_OR_RETURN(const size_t index, choose_adapter(infos, wanted));
  return adapters[index];
}

namespace internal {

Limits convert_limits(const wgpu::Limits& limits) {
  Limits result;
  result.max_buffer_size = limits.maxBufferSize;
  result.max_storage_binding_size = limits.maxStorageBufferBindingSize;
  result.max_storage_buffers_per_stage = limits.maxStorageBuffersPerShaderStage;
  result.min_storage_offset_alignment = limits.minStorageBufferOffsetAlignment;
  result.min_uniform_offset_alignment = limits.minUniformBufferOffsetAlignment;
  result.max_workgroup_storage_size = limits.maxComputeWorkgroupStorageSize;
  result.max_invocations_per_workgroup = limits.maxComputeInvocationsPerWorkgroup;
  result.max_workgroup_size_x = limits.maxComputeWorkgroupSizeX;
  result.max_workgroups_per_dimension = limits.maxComputeWorkgroupsPerDimension;
  result.max_immediate_size = limits.maxImmediateSize;
  return result;
}

AdapterInfo describe_adapter(const InstanceState& instance, const wgpu::Adapter& adapter) {
  AdapterInfo info;
  const auto has = [&](wgpu::FeatureName name) { return bool(adapter.HasFeature(name)); };
  const auto speaks = [&](wgpu::WGSLLanguageFeatureName name) {
    return bool(instance.handle.HasWGSLLanguageFeature(name));
  };
  const bool has_matrix = has(wgpu::FeatureName::ChromiumExperimentalSubgroupMatrix);

  wgpu::AdapterPropertiesSubgroupMatrixConfigs matrices;
  wgpu::AdapterInfo raw;
  if (has_matrix) {
    raw.nextInChain = &matrices;  // may be asked for only where the feature exists
  }
  adapter.GetInfo(&raw);
  info.name = to_string(raw.device);
  info.vendor = to_string(raw.vendor);
  info.driver = to_string(raw.description);
  info.backend = backend_name(raw.backendType);
  info.type = convert_type(raw.adapterType);
  info.vendor_id = raw.vendorID;
  info.device_id = raw.deviceID;
  info.subgroup_min_size = raw.subgroupMinSize;
  info.subgroup_max_size = raw.subgroupMaxSize;
  for (size_t i = 0; has_matrix && i < matrices.configCount; ++i) {
    const wgpu::SubgroupMatrixConfig& config = matrices.configs[i];
    const auto input = convert_matrix_type(config.componentType);
    const auto result = convert_matrix_type(config.resultComponentType);
    if (input && result) {
      info.matrix_shapes.push_back({*input, *result, config.M, config.N, config.K});
    }
  }

  wgpu::Limits limits;
  adapter.GetLimits(&limits);
  info.limits = convert_limits(limits);
  if (info.limits.max_immediate_size == wgpu::kLimitU32Undefined) {
    info.limits.max_immediate_size = 0;
  }

  const auto offer = [&](Feature feature, bool available) {
    if (available) {
      info.features.insert(feature);
    }
  };
  offer(Feature::shader_f16, has(wgpu::FeatureName::ShaderF16));
  offer(Feature::subgroups, has(wgpu::FeatureName::Subgroups));
  offer(Feature::subgroup_matrix,
        has_matrix && has(wgpu::FeatureName::Subgroups) && !info.matrix_shapes.empty());
  offer(Feature::packed_dot, speaks(wgpu::WGSLLanguageFeatureName::Packed4x8IntegerDotProduct));
  offer(Feature::timestamps, has(wgpu::FeatureName::TimestampQuery));
  offer(Feature::immediates, speaks(wgpu::WGSLLanguageFeatureName::ImmediateAddressSpace) &&
                                 info.limits.max_immediate_size >= 64);
  return info;
}

}  // namespace internal
}  // namespace ptero::gpu
