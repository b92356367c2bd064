// SPDX-License-Identifier: BSD-3-Clause
// How fast rms_norm runs on this machine: every variant the device has, for several ways to share a
// row among threads, and what planning chooses (*). Time of a dispatch in a dependent sequence, the
// median of several runs, and the least time that the process spent on it on all cores.
// Usage: norm_bench [ROWSxWIDTH ...], with PTERO_ADAPTER to choose an adapter.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/checked.h"
#include "common/bench.h"
#include "gpu/device.h"
#include "gpu/native/wait.h"
#include "gpu/step.h"
#include "graph/model.h"
#include "ops/common/variant.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/rms_norm.wgsl.h"

namespace {

using namespace ptero;

struct Shape {
  uint32_t rows = 0;
  uint32_t width = 0;
};

Result<Shape> parse_shape(std::string_view text) {
  Shape shape;
  const char* const end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, shape.rows);
  const bool more = rows.ec == std::errc() && rows.ptr != end && *rows.ptr == 'x';
  const auto width = std::from_chars(more ? rows.ptr + 1 : end, end, shape.width);
  PTERO_REJECT_IF(
      !more || width.ec != std::errc() || width.ptr != end || shape.rows == 0 || shape.width == 0,
      invalid_argument, "Shape ({}) is not of the form ROWSxWIDTH.", text);
  return shape;
}

Result<bench::Times> measure(gpu::Device& device, const Shape& shape, const ops::Variant& variant,
                             const ops::RowSplit& split) {
  constexpr int kRepeats = 200;
  constexpr int kRuns = 9;
  const uint64_t bytes = uint64_t{shape.rows} * shape.width * *pte::element_size(variant.element);
  std::vector<gpu::Buffer> buffers;
  for (const char* label : {"x", "weight", "y"}) {
    PTERO_ASSIGN_OR_RETURN(gpu::Buffer buffer,
                           device.create_buffer(label, bytes, gpu::MemoryKind::activations));
    buffers.push_back(std::move(buffer));
  }
  PTERO_ASSIGN_OR_RETURN(const gpu::KernelKey key,
                         ops::rms_norm_key(graph::device_facts(device), variant, split));
  PTERO_ASSIGN_OR_RETURN(const auto kernels, gpu::wait_for(device.prepare({key})));
  const std::vector<gpu::Binding> forth = {{&buffers[0]}, {&buffers[1]}, {&buffers[2]}};
  const std::vector<gpu::Binding> back = {{&buffers[2]}, {&buffers[1]}, {&buffers[0]}};
  PTERO_ASSIGN_OR_RETURN(const gpu::BindGroup there, device.bind(kernels[0], forth));
  PTERO_ASSIGN_OR_RETURN(const gpu::BindGroup again, device.bind(kernels[0], back));
  gpu::Step step;
  const ops::wgsl::RmsNormParams params{
      .rows = shape.rows, .width = shape.width / variant.width, .eps = 1e-5f};
  for (int i = 0; i < kRepeats; ++i) {
    PTERO_RETURN_IF_ERROR(
        step.dispatch(kernels[0], i % 2 == 0 ? there : again, params, split.grid));
  }
  PTERO_ASSIGN_OR_RETURN(const bench::Times times, bench::time_runs(kRuns, [&]() -> Status {
                           PTERO_RETURN_IF_ERROR(device.submit(step));
                           return gpu::wait_for(device.finished());
                         }));
  return times / kRepeats;
}

Status measure_all(gpu::Device& device, const Shape& shape) {
  const graph::DeviceFacts facts = graph::device_facts(device);
  for (const ops::Variant& variant : ops::variants()) {
    PTERO_ASSIGN_OR_RETURN(const ops::VariantText text, ops::make_variant(variant));
    if (!device.features().contains_all(text.features) || shape.width % variant.width != 0) {
      continue;
    }
    const uint64_t loads = shape.width / variant.width;
    PTERO_ASSIGN_OR_RETURN(const ops::RowSplit chosen,
                           ops::rms_norm_split(facts, shape.rows, loads));
    for (const uint32_t wg_size : {1, 8, 32, 64, 128, 256}) {
      for (const uint32_t lanes : {1, 8, 32, 64, 128, 256}) {
        const bool fits = wg_size <= facts.limits.max_invocations_per_workgroup &&
                          lanes <= wg_size && (lanes == wg_size || lanes == 1 || lanes == 8);
        const auto grid = graph::fold_grid(
            ceil_div<uint64_t>(shape.rows, std::max(1u, wg_size / lanes)), facts.limits);
        if (!fits || !grid) {
          continue;
        }
        PTERO_ASSIGN_OR_RETURN(const bench::Times times,
                               measure(device, shape, variant, {wg_size, lanes, *grid}));
        const bool is_chosen = chosen.wg_size == wg_size && chosen.lanes == lanes;
        fmt::print("| {:>5} x {:>5} | {:<15} | {:>3} | {:>3}{} | {:>8.2f} | {:>8.2f} |\n",
                   shape.rows, shape.width, ops::name_of(variant), wg_size, lanes,
                   is_chosen ? '*' : ' ', times.wall, times.processor);
        std::fflush(stdout);
      }
    }
  }
  return ok_status();
}

Status run(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    arguments = {"1x576", "1x2048", "127x576", "512x2048"};
  }
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, bench::open_device({.robustness = false}));
  fmt::print("rms_norm on {} ({})\n\n", device.adapter().name, device.adapter().driver);
  fmt::print("| {:<13} | {:<15} | {:>3} | {:>4} | {:>8} | {:>8} |\n", "rows x width", "variant",
             "wg", "row", "us", "CPU us");
  for (const std::string& argument : arguments) {
    PTERO_ASSIGN_OR_RETURN(const Shape shape, parse_shape(argument));
    PTERO_RETURN_IF_ERROR(measure_all(device, shape));
  }
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::finish("norm_bench", run({argv + 1, argv + argc}));
}
