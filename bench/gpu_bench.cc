// SPDX-License-Identifier: BSD-3-Clause
// What the GPU layer costs on this machine: recording, submitting, dispatching, waiting, copying,
// compiling. Medians of several runs. PTERO_ADAPTER chooses an adapter.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/bench.h"
#include "gpu/device.h"
#include "gpu/native/wait.h"
#include "gpu/selfcheck/check_chain.wgsl.h"
#include "gpu/step.h"

namespace {

using namespace ptero;
using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// Median of `runs` calls after two that do not count.
template <typename Body>
Result<double> median(int runs, Body&& body) {
  std::vector<double> times;
  for (int i = -2; i < runs; ++i) {
    PTERO_ASSIGN_OR_RETURN(const double time, body());
    if (i >= 0) {
      times.push_back(time);
    }
  }
  return bench::median(std::move(times));
}

void row(std::string_view what, double value, std::string_view unit) {
  fmt::print("| {:<58} | {:>10.2f} {:<5} |\n", what, value, unit);
}

struct Chain {
  gpu::Buffer a;
  gpu::Buffer b;
  gpu::BindGroup forth;
  gpu::BindGroup back;
  gpu::Kernel kernel;

  // `links` dependent dispatches of `width` elements.
  Result<gpu::Step> record(uint32_t links, uint32_t width) const {
    gpu::Step step;
    for (uint32_t i = 0; i < links; ++i) {
      PTERO_RETURN_IF_ERROR(step.dispatch(
          kernel, i % 2 == 0 ? forth : back,
          gpu::wgsl::CheckChainParams{.n = width, .add = static_cast<float>(i)}, {width / 64}));
    }
    return step;
  }
};

Result<Chain> make_chain(gpu::Device& device, uint32_t width) {
  Chain chain;
  PTERO_ASSIGN_OR_RETURN(const auto kernels,
                         gpu::wait_for(device.prepare({{&gpu::wgsl::kCheckChain, {}, {}, {}}})));
  chain.kernel = kernels[0];
  PTERO_ASSIGN_OR_RETURN(chain.a,
                         device.create_buffer("a", width * 4ull, gpu::MemoryKind::activations));
  PTERO_ASSIGN_OR_RETURN(chain.b,
                         device.create_buffer("b", width * 4ull, gpu::MemoryKind::activations));
  const gpu::Binding forth[] = {{&chain.a}, {&chain.b}};
  const gpu::Binding back[] = {{&chain.b}, {&chain.a}};
  PTERO_ASSIGN_OR_RETURN(chain.forth, device.bind(chain.kernel, forth));
  PTERO_ASSIGN_OR_RETURN(chain.back, device.bind(chain.kernel, back));
  return chain;
}

Status bench_steps(gpu::Device& device, std::string_view suffix) {
  constexpr uint32_t kLinks = 1000;
  PTERO_ASSIGN_OR_RETURN(const Chain chain, make_chain(device, 64));
  PTERO_ASSIGN_OR_RETURN(const double recording, median(9, [&]() -> Result<double> {
                           const auto start = Clock::now();
                           PTERO_RETURN_IF_ERROR(chain.record(kLinks, 64));
                           return microseconds(Clock::now() - start) / kLinks;
                         }));
  row(fmt::format("record a dispatch{}", suffix), recording, "us");

  PTERO_ASSIGN_OR_RETURN(const gpu::Step step, chain.record(kLinks, 64));
  PTERO_ASSIGN_OR_RETURN(const double submitting, median(9, [&]() -> Result<double> {
                           const auto start = Clock::now();
                           PTERO_RETURN_IF_ERROR(device.submit(step));
                           const double time = microseconds(Clock::now() - start) / kLinks;
                           PTERO_RETURN_IF_ERROR(gpu::wait_for(device.finished()));
                           return time;
                         }));
  row(fmt::format("encode and submit a dispatch{}", suffix), submitting, "us");

  PTERO_ASSIGN_OR_RETURN(const double running, median(9, [&]() -> Result<double> {
                           const auto start = Clock::now();
                           PTERO_RETURN_IF_ERROR(device.submit(step));
                           PTERO_RETURN_IF_ERROR(gpu::wait_for(device.finished()));
                           return microseconds(Clock::now() - start) / kLinks;
                         }));
  row(fmt::format("run a dispatch of a dependent chain, wall{}", suffix), running, "us");
  return ok_status();
}

Status bench_waiting(gpu::Device& device) {
  PTERO_ASSIGN_OR_RETURN(const Chain chain, make_chain(device, 64));
  PTERO_ASSIGN_OR_RETURN(const gpu::Step one, chain.record(1, 64));
  PTERO_ASSIGN_OR_RETURN(const double waiting, median(51, [&]() -> Result<double> {
                           const auto start = Clock::now();
                           PTERO_RETURN_IF_ERROR(device.submit(one));
                           PTERO_RETURN_IF_ERROR(gpu::wait_for(device.finished()));
                           return microseconds(Clock::now() - start);
                         }));
  row("submit one dispatch and wait", waiting, "us");
  PTERO_ASSIGN_OR_RETURN(
      const double reading, median(51, [&]() -> Result<double> {
        const gpu::ReadRange range{&chain.a, 0, 4};
        const auto start = Clock::now();
        PTERO_RETURN_IF_ERROR(gpu::wait_for(device.submit_and_read(&one, std::span(&range, 1))));
        return microseconds(Clock::now() - start);
      }));
  row("submit one dispatch and read 4 bytes back", reading, "us");
  const uint32_t word = 7;
  PTERO_ASSIGN_OR_RETURN(
      const double writing, median(51, [&]() -> Result<double> {
        const auto start = Clock::now();
        PTERO_RETURN_IF_ERROR(device.write(chain.a, 0, std::as_bytes(std::span(&word, 1))));
        return microseconds(Clock::now() - start);
      }));
  row("write 4 bytes", writing, "us");
  return gpu::wait_for(device.finished());
}

Status bench_copying(gpu::Device& device) {
  const uint64_t bytes = device.adapter().is_software() ? 64ull << 20 : 512ull << 20;
  PTERO_ASSIGN_OR_RETURN(const gpu::Buffer a,
                         device.create_buffer("source", bytes, gpu::MemoryKind::other));
  PTERO_ASSIGN_OR_RETURN(const gpu::Buffer b,
                         device.create_buffer("target", bytes, gpu::MemoryKind::other));
  constexpr int kCopies = 8;
  gpu::Step step;
  for (int i = 0; i < kCopies; ++i) {
    PTERO_RETURN_IF_ERROR(step.copy(a, 0, b, 0, bytes));
  }
  PTERO_ASSIGN_OR_RETURN(const double copying, median(5, [&]() -> Result<double> {
                           const auto start = Clock::now();
                           PTERO_RETURN_IF_ERROR(device.submit(step));
                           PTERO_RETURN_IF_ERROR(gpu::wait_for(device.finished()));
                           return microseconds(Clock::now() - start);
                         }));
  row("copy on the device, bytes read and written",
      2.0 * kCopies * static_cast<double>(bytes) / copying / 1e3, "GB/s");
  return ok_status();
}

// Forty pipelines that no cache has seen: each has a constant of its own in the prelude.
Status bench_compiling(gpu::Device& device) {
  constexpr int kKernels = 40;
  int salt = 0;
  PTERO_ASSIGN_OR_RETURN(
      const double compiling, median(3, [&]() -> Result<double> {
        std::vector<gpu::KernelKey> keys;
        for (int i = 0; i < kKernels; ++i) {
          keys.push_back(
              {&gpu::wgsl::kCheckChain, fmt::format("const kSalt = {}u;\n", salt++), {}, {}});
        }
        const auto start = Clock::now();
        PTERO_RETURN_IF_ERROR(gpu::wait_for(device.prepare(std::move(keys))));
        return microseconds(Clock::now() - start) / kKernels / 1e3;
      }));
  row(fmt::format("compile a small kernel, {} at once", kKernels), compiling, "ms");
  return ok_status();
}

Status run() {
  PTERO_ASSIGN_OR_RETURN(const gpu::Adapter adapter, bench::find_adapter());
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, gpu::wait_for(gpu::Device::open(adapter, {})));
  fmt::print("GPU layer on {} ({}), {}; medians\n\n", adapter.info().name, adapter.info().driver,
             gpu::Instance::implementation_version());
  fmt::print("| {:<58} | {:>16} |\n|{:-<60}|{:->17}:|\n", "what", "", "", "");
  PTERO_RETURN_IF_ERROR(bench_steps(device, ""));
  PTERO_RETURN_IF_ERROR(bench_waiting(device));
  PTERO_RETURN_IF_ERROR(bench_copying(device));
  PTERO_RETURN_IF_ERROR(bench_compiling(device));
  gpu::DeviceOptions options;
  options.disabled.insert(gpu::Feature::immediates);
  PTERO_ASSIGN_OR_RETURN(gpu::Device uniforms,
                         gpu::wait_for(gpu::Device::open(adapter, std::move(options))));
  return bench_steps(uniforms, ", immediates off");
}

}  // namespace

int main() {
  return bench::finish("gpu_bench", run());
}
