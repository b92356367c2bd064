// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/testing/test_device.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <doctest/doctest.h>

#include "gpu/selfcheck/check_add.wgsl.h"
#include "gpu/selfcheck/check_chain.wgsl.h"

namespace ptero::gpu::testing {
namespace {

constexpr uint32_t kWorkloadCount = 100;
constexpr float kWorkloadAdd = 3.5f;

double workload_input(uint32_t i) {
  return 0.25 * i - 7;
}

Result<Adapter> find_test_adapter() {
  const char* wanted = std::getenv("PTERO_TEST_ADAPTER");
  const std::string_view name = wanted != nullptr ? wanted : "";
  std::string_view part;
  if (name == "lavapipe") {
    part = "llvmpipe";
  } else if (name == "swiftshader") {
    part = "SwiftShader";
  } else if (name != "any") {
    return make_error(ErrorCode::invalid_argument,
                      "PTERO_TEST_ADAPTER ({}) is not lavapipe, swiftshader or any.", name);
  }
  PTERO_ASSIGN_OR_RETURN(const Instance instance, Instance::create());
  PTERO_ASSIGN_OR_RETURN(const std::vector<Adapter> adapters, list_adapters(instance));
  PTERO_ASSIGN_OR_RETURN(Adapter adapter, choose_adapter(adapters, ""));
  PTERO_REJECT_IF(adapter.info().name.find(part) == std::string::npos, invalid_argument,
                  "The adapter of this machine ({}) is not the one that the test asks for ({}).",
                  adapter.info().name, name);
  std::printf("adapter: %s, %s\n", adapter.info().name.c_str(), adapter.info().driver.c_str());
  std::fflush(stdout);
  return adapter;
}

bool is_test_adapter(std::string_view part) {
  return test_adapter().info().name.find(part) != std::string::npos;
}

}  // namespace

void fail_at(const Where& where, const std::string& why) {
  ADD_FAIL_AT(where.file_name(), static_cast<int>(where.line()), why);
  std::abort();  // not reached: the line above throws
}

void check_error(const Error* error, ErrorCode code, std::initializer_list<std::string_view> parts,
                 const Where& where) {
  const int line = static_cast<int>(where.line());
  if (error == nullptr) {
    ADD_FAIL_CHECK_AT(where.file_name(), line, "It succeeds and should not.");
    return;
  }
  const std::string text = error->to_string();
  if (error->code() != code) {
    ADD_FAIL_CHECK_AT(
        where.file_name(), line,
        fmt::format("The error is {} and not {}: {}", error_code_info(error->code()).name,
                    error_code_info(code).name, text));
  }
  if (text.size() < 10 || text[0] < 'A' || text[0] > 'Z') {
    ADD_FAIL_CHECK_AT(where.file_name(), line, fmt::format("Not a sentence: {}", text));
  }
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) {
      ADD_FAIL_CHECK_AT(where.file_name(), line, fmt::format("No \"{}\" in: {}", part, text));
    }
  }
}

const Adapter& test_adapter() {
  static const Result<Adapter> adapter = find_test_adapter();
  if (!adapter.ok()) {
    FAIL(adapter.error().to_string());
  }
  return *adapter;
}

bool on_lavapipe() {
  return is_test_adapter("llvmpipe");
}
bool on_swiftshader() {
  return is_test_adapter("SwiftShader");
}

Device open_device(DeviceOptions options, Where where) {
  return must(Device::open(test_adapter(), std::move(options)), where);
}

Kernel prepare(Device& device, const KernelSource& source, Where where) {
  return must(device.prepare({{&source}}), where).front();
}

BindGroup bind(Device& device, const Kernel& kernel, std::initializer_list<Binding> bindings,
               Where where) {
  return must(device.bind(kernel, std::span(bindings.begin(), bindings.size())), where);
}

Buffer make_buffer(Device& device, std::string label, uint64_t bytes, Where where) {
  return must(device.create_buffer(std::move(label), bytes, MemoryKind::other), where);
}

Grid grid_for(const Limits& limits, uint64_t elements) {
  const uint64_t groups = (elements + 63) / 64;
  const uint64_t x = std::min<uint64_t>(groups, limits.max_workgroups_per_dimension);
  return {static_cast<uint32_t>(x), static_cast<uint32_t>((groups + x - 1) / x), 1};
}

void check_near(const std::vector<float>& got, const std::vector<double>& want, double tolerance,
                Where where) {
  std::string first;
  size_t wrong = got.size() == want.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    const double error = std::abs(double{got[i]} - want[i]);
    if (!(error <= tolerance * std::max(1.0, std::abs(want[i])))) {
      if (first.empty()) {
        first = fmt::format("; element {} is {} and not {}", i, got[i], want[i]);
      }
      ++wrong;
    }
  }
  if (wrong > 0) {
    ADD_FAIL_CHECK_AT(where.file_name(), static_cast<int>(where.line()),
                      fmt::format("{} of {} elements ({} expected) are wrong{}", wrong, got.size(),
                                  want.size(), first));
  }
}

Result<std::vector<float>> run_workload(Device& device, std::chrono::milliseconds timeout) {
  std::vector<float> input(kWorkloadCount);
  for (uint32_t i = 0; i < kWorkloadCount; ++i) {
    input[i] = static_cast<float>(workload_input(i));
  }
  const uint64_t bytes = kWorkloadCount * sizeof(float);
  PTERO_ASSIGN_OR_RETURN(const Buffer x, device.create_buffer("x", bytes, MemoryKind::other));
  PTERO_ASSIGN_OR_RETURN(const Buffer y, device.create_buffer("y", bytes, MemoryKind::other));
  PTERO_ASSIGN_OR_RETURN(const Buffer z, device.create_buffer("z", bytes, MemoryKind::other));
  PTERO_RETURN_IF_ERROR(device.write(x, 0, std::as_bytes(std::span(input))));
  PTERO_ASSIGN_OR_RETURN(
      const std::vector<Kernel> kernels,
      wait_for(device.prepare({{&wgsl::kCheckChain}, {&wgsl::kCheckAdd}}), timeout));
  PTERO_ASSIGN_OR_RETURN(const BindGroup chain,
                         device.bind(kernels[0], std::array{Binding{&x}, Binding{&y}}));
  PTERO_ASSIGN_OR_RETURN(
      const BindGroup add,
      device.bind(kernels[1], std::array{Binding{&x}, Binding{&y}, Binding{&z}}));
  Step first;
  PTERO_RETURN_IF_ERROR(first.dispatch(
      kernels[0], chain, wgsl::CheckChainParams{.n = kWorkloadCount, .add = kWorkloadAdd}, {2}));
  PTERO_RETURN_IF_ERROR(device.submit(first));
  Step second;
  PTERO_RETURN_IF_ERROR(
      second.dispatch(kernels[1], add, wgsl::CheckAddParams{.n = kWorkloadCount}, {2}));
  const ReadRange range{&z, 0, bytes};
  PTERO_ASSIGN_OR_RETURN(const ReadData data,
                         wait_for(device.submit_and_read(&second, std::span(&range, 1)), timeout));
  PTERO_RETURN_IF_ERROR(wait_for(device.finished(), timeout));
  return values_of<float>(data.front());
}

std::vector<double> workload_golden() {
  std::vector<double> want(kWorkloadCount);
  for (uint32_t i = 0; i < kWorkloadCount; ++i) {
    want[i] = 1.5 * workload_input(i) + kWorkloadAdd;
  }
  return want;
}

}  // namespace ptero::gpu::testing
