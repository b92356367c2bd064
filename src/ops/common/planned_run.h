// SPDX-License-Identifier: BSD-3-Clause
// A graph of one operator call, run on the test adapter as it is planned for any device facts: the
// kernels that a GPU gets can so be tried on a software adapter. For GPU tests of operators.
//
// Every tensor lies between guards of NaN, on a device without bounds checks: what a kernel reads
// behind its tensors spoils the result, what it writes there is found.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "graph/memory_plan.h"
#include "graph/model.h"
#include "graph/planner.h"
#include "ops/all_operators.h"
#include "pte/graph.h"

namespace ptero::ops {

class PlannedRun {
 public:
  static constexpr uint64_t kGuardBytes = 512;  // a multiple of every offset alignment

  // `change` edits the facts that planning sees.
  explicit PlannedRun(gpu::Device& device,
                      const std::function<void(graph::DeviceFacts&)>& change = {})
      : device_(device), facts_(graph::device_facts(device)) {
    if (change) {
      change(facts_);
    }
  }

  // Each returns the id of a new value.
  uint32_t value(pte::GraphValue value) {
    graph_.values.push_back(std::move(value));
    return static_cast<uint32_t>(graph_.values.size() - 1);
  }
  uint32_t null() {
    graph_.values.emplace_back();
    return static_cast<uint32_t>(graph_.values.size() - 1);
  }
  template <typename T>
  uint32_t input(std::vector<uint32_t> dims, pte::GraphDtype dtype, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    graph_.inputs.push_back(tensor(std::move(dims), dtype));
    inputs_.emplace_back(bytes.begin(), bytes.end());
    return graph_.inputs.back();
  }
  uint32_t output(std::vector<uint32_t> dims, pte::GraphDtype dtype) {
    graph_.outputs.push_back(tensor(std::move(dims), dtype));
    return graph_.outputs.back();
  }

  // Runs the call at the shapes of the inputs; the bytes of each output.
  std::vector<std::vector<std::byte>> run(std::string name, std::vector<uint32_t> args) {
    using namespace gpu::testing;
    graph_.chain = {{0, std::move(name), std::move(args)}};
    const auto memory = must(graph::plan_memory(graph_, all_operators()));
    graph::Planner planner(graph_, memory, all_operators(), facts_);
    plan_ = must(planner.plan(must(planner.largest_inputs()))).plan;
    bytes_.clear();
    buffers_.clear();
    for (const graph::Storage& storage : memory.storages) {
      add_buffer(storage.bytes);
    }
    for (const uint64_t bytes : plan_->scratch) {
      add_buffer(bytes);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const uint32_t storage = *memory.storage_of[graph_.inputs[i]];
      REQUIRE(inputs_[i].size() <= bytes_[storage]);
      must(device_.write(buffers_[storage], kGuardBytes, inputs_[i]));
    }
    must(device_.submit(record(memory)));
    check_guards();
    std::vector<std::vector<std::byte>> results;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const auto& tensor = std::get<pte::GraphTensor>(graph_.values[graph_.outputs[i]]);
      const uint64_t size = plan_->output_shapes[i].numel() * *pte::element_size(tensor.dtype);
      const gpu::Buffer& buffer = buffers_[*memory.storage_of[graph_.outputs[i]]];
      results.push_back(must(device_.read(buffer, kGuardBytes, size)).front());
    }
    return results;
  }

  // Names of the kernels of the last run, in order.
  std::vector<std::string> kernels() const {
    std::vector<std::string> names;
    for (const auto& command : plan_->commands) {
      names.emplace_back(std::get<graph::PlannedDispatch>(command).kernel.source->name);
    }
    return names;
  }

 private:
  uint32_t tensor(std::vector<uint32_t> dims, pte::GraphDtype dtype) {
    pte::GraphTensor made;
    made.dtype = dtype;
    made.dims = std::move(dims);
    return value(std::move(made));
  }

  void add_buffer(uint64_t bytes) {
    const uint64_t whole = (bytes + 3) / 4 * 4;
    bytes_.push_back(whole);
    buffers_.push_back(gpu::testing::upload(
        device_, "guarded", std::vector<uint32_t>((whole + 2 * kGuardBytes) / 4, ~0u)));
  }

  gpu::Step record(const graph::MemoryPlan& memory) {
    using namespace gpu::testing;
    gpu::Step step;
    for (const auto& command : plan_->commands) {
      const auto* dispatch = std::get_if<graph::PlannedDispatch>(&command);
      REQUIRE(dispatch != nullptr);
      const gpu::Kernel kernel = must(device_.prepare({dispatch->kernel})).front();
      std::vector<gpu::Binding> bindings;
      for (const graph::PlannedBinding& binding : dispatch->bindings) {
        const size_t i = binding.id + (binding.is_scratch ? memory.storages.size() : 0);
        const uint64_t size = binding.size != 0 ? binding.size : bytes_[i] - binding.offset;
        REQUIRE(binding.offset + size <= bytes_[i]);
        REQUIRE(size <= facts_.limits.max_storage_binding_size);
        // The guard behind it is bound as well: drivers drop what is written beyond a binding.
        bindings.push_back({&buffers_[i], kGuardBytes + binding.offset, size + kGuardBytes});
      }
      const gpu::BindGroup group = must(device_.bind(kernel, bindings));
      must(step.dispatch(kernel, group, std::span<const std::byte>(dispatch->params),
                         dispatch->grid));
    }
    return step;
  }

  void check_guards() {
    using namespace gpu::testing;
    const std::vector<std::byte> guard(kGuardBytes, std::byte{0xff});
    for (size_t i = 0; i < buffers_.size(); ++i) {
      CAPTURE(i);
      CHECK(must(device_.read(buffers_[i], 0, kGuardBytes)).front() == guard);
      CHECK(must(device_.read(buffers_[i], kGuardBytes + bytes_[i], kGuardBytes)).front() == guard);
    }
  }

  gpu::Device& device_;
  graph::DeviceFacts facts_;
  pte::Graph graph_;
  std::vector<std::vector<std::byte>> inputs_;
  std::shared_ptr<const graph::Plan> plan_;
  std::vector<uint64_t> bytes_;  // by storage, then by scratch buffer; without guards
  std::vector<gpu::Buffer> buffers_;
};

}  // namespace ptero::ops
