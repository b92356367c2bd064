// SPDX-License-Identifier: BSD-3-Clause
// Compiles every kernel that planning may ask for: what it asks for with each of the test models,
// in f32 and in f16, with few and many rows, for adapters of either kind, with and without each
// feature, and with every option. A kernel that nothing asks for fails the test: it needs a model,
// or it is not used.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include "gpu/testing/test_device.h"
#include "graph/memory_report.h"
#include "graph/model.h"
#include "graph/planner.h"
#include "graph/testing/graph_builder.h"
#include "inspect/load.h"
#include "llm/all_kernels.h"
#include "llm/device_sampler.h"
#include "ops/all_kernels.h"
#include "ops/all_operators.h"
#include "ops/common/variant.h"
#include "ops/norm/rms_norm.h"
#include "passes/passes.h"

namespace ptero {
namespace {

using namespace gpu::testing;
using gpu::Feature;
using graph::DeviceFacts;
using pte::GraphDtype;

using Keys = std::unordered_set<gpu::KernelKey>;

bool has_operator(const pte::Graph& graph, std::string_view part) {
  return std::any_of(graph.chain.begin(), graph.chain.end(), [&](const pte::OperatorCall& call) {
    return call.name.find(part) != std::string::npos;
  });
}

// Every graph of the test models, and the same with halves for single precision.
const std::vector<pte::Graph>& graphs() {
  static const std::vector<pte::Graph> all = [] {
    std::vector<pte::Graph> graphs;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(PTERO_TESTDATA "/models")) {
      if (entry.path().extension() != ".pte") {
        continue;
      }
      const inspect::LoadedFile file = must(inspect::load_file(entry.path().string(), {}));
      for (const auto& delegates : file.program->delegates) {
        for (const inspect::LoadedDelegate& delegate : delegates) {
          graphs.push_back(delegate.graph.value());
        }
      }
    }
    const size_t count = graphs.size();
    for (size_t i = 0; i < count; ++i) {
      pte::Graph half = graphs[i];
      for (pte::GraphValue& value : half.values) {
        if (auto* tensor = std::get_if<pte::GraphTensor>(&value);
            tensor != nullptr && tensor->dtype == GraphDtype::float32) {
          tensor->dtype = GraphDtype::float16;
        }
      }
      graphs.push_back(std::move(half));
    }
    return graphs;
  }();
  return all;
}

// Facts of this device as if it had more or fewer features and threads, were of the other kind, or
// were asked for something.
std::vector<DeviceFacts> facts_to_try(const gpu::Device& device) {
  DeviceFacts real = graph::device_facts(device);
  if (real.matrix_shapes.empty()) {  // what is planned with these is not compiled here
    real.matrix_shapes = {{gpu::MatrixType::f16, gpu::MatrixType::f32, 8, 8, 8}};
    real.subgroup_min_size = real.subgroup_max_size = 8;
  }
  const auto change = [&](gpu::FeatureSet features, bool software, uint32_t threads) {
    DeviceFacts facts = real;
    facts.features = features;
    facts.is_software = software;
    facts.limits.max_invocations_per_workgroup =
        std::min(facts.limits.max_invocations_per_workgroup, threads);
    return facts;
  };
  std::vector<gpu::FeatureSet> sets = {gpu::FeatureSet::all(), {}};
  for (const Feature feature : gpu::FeatureSet::all()) {
    sets.push_back(gpu::FeatureSet::all());
    sets.back().erase(feature);
    sets.push_back({feature});
  }
  std::vector<DeviceFacts> all;
  for (const gpu::FeatureSet features : sets) {
    for (const bool software : {false, true}) {
      for (const uint32_t threads : {64u, 128u, 1024u}) {
        all.push_back(change(features, software, threads));
      }
    }
  }
  return all;
}

std::vector<graph::PlanOptions> options_to_try() {
  std::vector<graph::PlanOptions> all;
  for (const graph::PlanOptionInfo& info : graph::plan_option_list()) {
    for (size_t i = 1; i < info.values.size(); ++i) {
      graph::PlanOptions options;
      must(set(options, fmt::format("{}={}", info.key, info.values[i])));
      if (info.key == "sdpa_query_tile") {
        options.sdpa_route = "tiles";
      }
      all.push_back(options);
    }
  }
  return all;
}

// Adds what planning asks for with inputs of all sizes.
void add_keys(const pte::Graph& original, const DeviceFacts& facts, Keys& keys) {
  pte::Graph graph = original;
  for (const graph::GraphPass& pass : passes::standard_passes()) {
    if (!pass(graph, facts).ok()) {
      return;
    }
  }
  const auto memory = graph::plan_memory(graph, ops::all_operators());
  if (!memory.ok()) {
    return;
  }
  graph::Planner planner(graph, *memory, ops::all_operators(), facts);
  std::set<std::vector<std::vector<uint32_t>>> tried;
  const auto try_inputs = [&](uint32_t most, std::optional<size_t> only_axis) {
    std::vector<graph::LiveInput> inputs = must(planner.largest_inputs());
    std::vector<std::vector<uint32_t>> shapes;
    for (graph::LiveInput& input : inputs) {
      shapes.emplace_back();
      for (size_t axis = 0; axis < input.shape.rank(); ++axis) {
        if (only_axis.value_or(axis) == axis) {
          input.shape.set(axis, std::min(input.shape[axis], most));
        }
        shapes.back().push_back(input.shape[axis]);
      }
    }
    if (!tried.insert(shapes).second) {
      return;
    }
    const auto run = planner.plan(inputs);
    if (!run.ok()) {
      return;  // no shape of this model
    }
    for (const auto& command : run->plan->commands) {
      if (const auto* dispatch = std::get_if<graph::PlannedDispatch>(&command)) {
        keys.insert(dispatch->kernel);
      }
    }
  };
  try_inputs(~0u, {});
  for (const uint32_t most : {1u, 2u, 4u, 20u}) {
    try_inputs(most, {});
    try_inputs(most, 0);  // rows of a matrix
    try_inputs(most, 1);  // tokens behind a batch
  }
}

// Attention over so many keys that decoding splits them.
pte::Graph long_attention(GraphDtype type, uint32_t rows) {
  graph::testing::GraphBuilder g;
  const uint32_t q = g.input({1, rows, 4, 64}, type);
  const uint32_t k = g.input({1, rows, 2, 64}, type);
  const uint32_t v = g.input({1, rows, 2, 64}, type);
  const uint32_t k_cache = g.constant("", {1, 4096, 2, 64}, type);
  const uint32_t v_cache = g.constant("", {1, 4096, 2, 64}, type);
  const uint32_t null = g.add(pte::Null{});
  const uint32_t y = g.tensor({1, rows, 4, 64}, type);
  g.call("sdpa_with_kv_cache.default",
         {q, k, v, k_cache, v_cache, g.add(int64_t{0}), null, null, null, g.add(true), null, y});
  g.outputs({y});
  return g.graph();
}

Keys all_keys(const gpu::Device& device) {
  Keys keys;
  const std::vector<DeviceFacts> facts = facts_to_try(device);
  for (size_t i = 0; i < graphs().size(); ++i) {
    const pte::Graph& graph = graphs()[i];
    for (const DeviceFacts& each : facts) {
      add_keys(graph, each, keys);
    }
    if (!has_operator(graph, "linear") && !has_operator(graph, "sdpa")) {
      continue;  // no option makes a difference
    }
    for (const graph::PlanOptions& options : options_to_try()) {
      for (size_t at = 0; at < facts.size(); at += 3) {  // with the fewest threads ...
        DeviceFacts each = facts[at + 2];                // ... and with the most
        each.options = options;
        add_keys(graph, each, keys);
      }
    }
  }
  // What no test model has the sizes for.
  for (const DeviceFacts& each : facts) {
    for (const GraphDtype type : {GraphDtype::float32, GraphDtype::float16}) {
      for (const uint32_t rows : {1u, 2u, 3u, 32u}) {
        add_keys(long_attention(type, rows), each, keys);
      }
    }
  }
  for (const ops::Variant& variant : ops::variants()) {
    for (const uint32_t lanes : {1u, 4u, 64u}) {
      keys.insert(must(ops::rms_norm_key(facts.front(), variant, {64, lanes, {}})));
    }
    DeviceFacts one = facts.front();
    one.subgroup_min_size = one.subgroup_max_size = 8;
    keys.insert(must(ops::rms_norm_key(one, variant, {8, 8, {}})));
  }
  for (const bool half : {false, true}) {
    for (const bool software : {false, true}) {
      keys.insert(llm::DeviceSampler::kernel_key(half, software));
    }
  }
  return keys;
}

void compile_all(gpu::Device device) {
  const Keys keys = all_keys(device);
  std::set<std::string_view> asked_for;
  std::map<std::string_view, size_t> compiled;
  std::vector<gpu::KernelKey> fitting;
  for (const gpu::KernelKey& key : keys) {
    asked_for.insert(key.source->name);
    if (device.features().contains_all(key.features)) {
      fitting.push_back(key);
      ++compiled[key.source->name];
    }
  }
  std::set<std::string_view> there_are;
  for (const gpu::KernelSource* source : ops::wgsl::kAllKernels) {
    there_are.insert(source->name);
  }
  for (const gpu::KernelSource* source : llm::wgsl::kAllKernels) {
    there_are.insert(source->name);
  }
  std::vector<std::string_view> nobody_asks_for;
  std::set_difference(there_are.begin(), there_are.end(), asked_for.begin(), asked_for.end(),
                      std::back_inserter(nobody_asks_for));
  CHECK_MESSAGE(nobody_asks_for.empty(), fmt::format("{}", fmt::join(nobody_asks_for, ", ")));
  CHECK(asked_for.size() == there_are.size());
  for (const gpu::KernelKey& key : fitting) {
    CAPTURE(std::string(key.source->name));
    CAPTURE(key.prelude);
    const auto made = gpu::wait_for(device.prepare({key}));
    CHECK_MESSAGE(made.ok(), (made.ok() ? "" : made.error().to_string()));
  }
  MESSAGE(fitting.size() << " of " << keys.size() << " kernels of " << compiled.size()
                         << " files compile here");
}

TEST_CASE("every kernel that planning may ask for compiles, with all features of the adapter") {
  compile_all(open_device());
}

TEST_CASE("every kernel that planning may ask for without any feature compiles") {
  compile_all(open_device({.disabled = gpu::FeatureSet::all()}));
}

}  // namespace
}  // namespace ptero
