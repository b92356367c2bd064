// SPDX-License-Identifier: BSD-3-Clause
// How fast 4-bit linear layers run on this machine, as their operator plans them: time of a
// dispatch in a dependent sequence, the median of several runs, and the least time that the process
// spent on it on all cores, which on a software adapter says more when the machine is shared.
// Usage: q4_linear_bench [--each] [--robustness] [OPTION=VALUE ...] [MxNxK[:group] ...], options of
// planning such as q4_gemm=matrix, with PTERO_ADAPTER to choose an adapter. --each measures a shape
// with every kernel that q4_gemm names, --robustness keeps the bounds checks of shaders.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/bench.h"
#include "gpu/device.h"
#include "gpu/native/wait.h"
#include "gpu/step.h"
#include "graph/memory_plan.h"
#include "graph/model.h"
#include "graph/planner.h"
#include "ops/all_operators.h"
#include "pte/graph.h"

namespace {

using namespace ptero;

struct Shape {
  uint32_t m = 1;
  uint32_t n = 0;
  uint32_t k = 0;
  uint32_t group = 32;

  double weights() const { return static_cast<double>(n) * k; }
};

// "1x1536x576:32"
Result<Shape> parse_shape(std::string_view text) {
  std::array<uint32_t, 4> numbers = {0, 0, 0, 32};
  const char* at = text.data();
  const char* end = at + text.size();
  size_t count = 0;
  while (count < numbers.size()) {
    const auto parsed = std::from_chars(at, end, numbers[count]);
    PTERO_REJECT_IF(parsed.ec != std::errc(), invalid_argument,
                    "Shape ({}) is not of the form MxNxK or MxNxK:group.", text);
    ++count;
    at = parsed.ptr;
    if (at == end) {
      break;
    }
    ++at;
  }
  PTERO_REJECT_IF(count < 3 || numbers[3] == 0, invalid_argument,
                  "Shape ({}) is not of the form MxNxK or MxNxK:group.", text);
  return Shape{numbers[0], numbers[1], numbers[2], numbers[3]};
}

pte::Graph make_graph(const Shape& shape) {
  pte::Graph graph;
  const auto tensor = [&](std::vector<uint32_t> dims, pte::GraphDtype dtype) {
    pte::GraphTensor made;
    made.dtype = dtype;
    made.dims = std::move(dims);
    graph.values.emplace_back(std::move(made));
    return static_cast<uint32_t>(graph.values.size() - 1);
  };
  const uint32_t x = tensor({shape.m, shape.k}, pte::GraphDtype::float32);
  const uint32_t weight = tensor({shape.n, (shape.k + 7) / 8 * 4}, pte::GraphDtype::uint8);
  const uint32_t scales = tensor({(shape.k + shape.group - 1) / shape.group, (shape.n + 3) / 4 * 4},
                                 pte::GraphDtype::float32);
  const uint32_t y = tensor({shape.m, shape.n}, pte::GraphDtype::float32);
  graph.inputs = {x, weight, scales};
  graph.outputs = {y};
  graph.values.emplace_back(int64_t{shape.group});
  graph.values.emplace_back();  // no bias
  graph.chain = {{0, "et_vk.linear_q4gsw.default", {x, weight, scales, y + 1, y + 2, y}}};
  return graph;
}

// Memory for every storage of the plan, and the layer recorded `repeats` times.
struct Job {
  std::vector<gpu::Buffer> storages;
  gpu::Step step;
  std::string kernel;
};

Result<Job> record(gpu::Device& device, const Shape& shape, const graph::PlanOptions& options,
                   int repeats) {
  const pte::Graph graph = make_graph(shape);
  PTERO_ASSIGN_OR_RETURN(const graph::MemoryPlan memory,
                         graph::plan_memory(graph, ops::all_operators()));
  graph::Planner planner(graph, memory, ops::all_operators(), graph::device_facts(device, options));
  PTERO_ASSIGN_OR_RETURN(const auto inputs, planner.largest_inputs());
  PTERO_ASSIGN_OR_RETURN(const graph::PlannedRun planned, planner.plan(inputs));
  const graph::Plan* plan = planned.plan.get();
  Job job;
  for (const graph::Storage& storage : memory.storages) {
    PTERO_ASSIGN_OR_RETURN(gpu::Buffer buffer,
                           device.create_buffer(storage.label, storage.bytes, storage.kind));
    job.storages.push_back(std::move(buffer));
  }
  for (int i = 0; i < repeats; ++i) {
    for (const auto& command : plan->commands) {
      const auto& dispatch = std::get<graph::PlannedDispatch>(command);
      PTERO_ASSIGN_OR_RETURN(const auto kernels, gpu::wait_for(device.prepare({dispatch.kernel})));
      std::vector<gpu::Binding> bindings;
      for (const graph::PlannedBinding& binding : dispatch.bindings) {
        bindings.push_back({&job.storages[binding.id], binding.offset, binding.size});
      }
      PTERO_ASSIGN_OR_RETURN(const gpu::BindGroup group, device.bind(kernels[0], bindings));
      PTERO_RETURN_IF_ERROR(job.step.dispatch(
          kernels[0], group, std::span<const std::byte>(dispatch.params), dispatch.grid));
      job.kernel = kernels[0].name();
    }
  }
  return job;
}

Status measure(gpu::Device& device, const Shape& shape, const graph::PlanOptions& options) {
  constexpr int kRuns = 7;
  const bool software = device.adapter().is_software();
  // Enough of them that what a submit costs does not count.
  const double work = shape.weights() * shape.m;
  const int repeats = static_cast<int>(std::clamp((software ? 7.5e7 : 3e11) / work, 4.0, 200.0));
  PTERO_ASSIGN_OR_RETURN(const Job job, record(device, shape, options, repeats));
  PTERO_ASSIGN_OR_RETURN(const bench::Times all, bench::time_runs(kRuns, [&]() -> Status {
                           PTERO_RETURN_IF_ERROR(device.submit(job.step));
                           return gpu::wait_for(device.finished());
                         }));
  const auto [time, processor] = all / repeats;
  const double bytes = shape.weights() * (0.5 + 4.0 / shape.group);
  fmt::print(
      "| {:>4} x {:>6} x {:>5} : {:>4} | {:<19} | {:>9.1f} | {:>9.1f} | {:>8.2f} | {:>7.1f} | "
      "{:>8.1f} |\n",
      shape.m, shape.n, shape.k, shape.group, job.kernel, time, processor,
      shape.weights() / time / 1e3, bytes / time / 1e3, 2 * shape.weights() * shape.m / time / 1e3);
  return ok_status();
}

// Whether the flag was there; it is no more.
bool take_flag(std::vector<std::string>& arguments, std::string_view flag) {
  return std::erase(arguments, flag) > 0;
}

// What q4_gemm takes; each a copy of `options` with it.
std::vector<graph::PlanOptions> each_kernel(const graph::PlanOptions& options) {
  std::vector<graph::PlanOptions> all;
  for (const graph::PlanOptionInfo& info : graph::plan_option_list()) {
    for (const std::string_view name : info.values) {
      if (info.key == "q4_gemm") {
        all.push_back(options);
        all.back().q4_gemm = name;
      }
    }
  }
  return all;
}

Status run(std::vector<std::string> arguments) {
  const bool every = take_flag(arguments, "--each");
  const bool robustness = take_flag(arguments, "--robustness");
  graph::PlanOptions options;
  for (const std::string& argument : arguments) {
    if (argument.find('=') != std::string::npos) {
      PTERO_RETURN_IF_ERROR(graph::set(options, argument));
    }
  }
  std::erase_if(arguments,
                [](const std::string& each) { return each.find('=') != std::string::npos; });
  if (arguments.empty()) {
    arguments = {"1x1536x576",  "1x576x1536",  "1x49152x576", "127x1536x576", "127x576x1536",
                 "1x2048x2048", "1x8192x2048", "1x2048x8192", "32x2048x2048"};
  }
  PTERO_ASSIGN_OR_RETURN(gpu::Device device, bench::open_device({.robustness = robustness}));
  fmt::print("4-bit linear layers on {} ({}), bounds checks {}\n\n", device.adapter().name,
             device.adapter().driver, robustness ? "on" : "off");
  fmt::print("| {:<27} | {:<19} | {:>9} | {:>9} | {:>8} | {:>7} | {:>8} |\n", "M x N x K : group",
             "kernel", "us", "CPU us", "G weight/s", "GB/s", "GFLOP/s");
  for (const std::string& argument : arguments) {
    PTERO_ASSIGN_OR_RETURN(const Shape shape, parse_shape(argument));
    const auto wanted_kernels = every ? each_kernel(options) : std::vector{options};
    for (const graph::PlanOptions& kernel : wanted_kernels) {
      PTERO_RETURN_IF_ERROR(measure(device, shape, kernel));
    }
  }
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  return bench::finish("q4_linear_bench", run({argv + 1, argv + argc}));
}
