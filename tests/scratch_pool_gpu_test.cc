// SPDX-License-Identifier: BSD-3-Clause
// Scratch that operators share on a device: results are those without sharing, to the bit, the
// bytes are those planned, and loading over and over takes no more memory.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "gpu/testing/test_device.h"
#include "graph/model.h"
#include "graph/session.h"
#include "graph/testing/graph_builder.h"
#include "ops/all_operators.h"
#include "passes/passes.h"

namespace ptero {
namespace {

using namespace gpu::testing;
using graph::testing::GraphBuilder;

constexpr uint32_t kLayers = 6;
constexpr uint32_t kRows = 24;

// Attention on attention: each layer takes what the one before makes for its queries.
pte::Graph layers() {
  GraphBuilder g;
  uint32_t q = g.input({1, kRows, 4, 16});
  const uint32_t k = g.input({1, kRows, 2, 16});
  const uint32_t v = g.input({1, kRows, 2, 16});
  const uint32_t null = g.add(pte::Null{});
  const uint32_t position = g.add(int64_t{0});
  const uint32_t causal = g.add(true);
  for (uint32_t i = 0; i < kLayers; ++i) {
    const uint32_t k_cache = g.constant("", {1, kRows, 2, 16});
    const uint32_t v_cache = g.constant("", {1, kRows, 2, 16});
    const uint32_t y = g.tensor({1, kRows, 4, 16});
    g.call("sdpa_with_kv_cache.default",
           {q, k, v, k_cache, v_cache, position, null, null, null, causal, null, y});
    q = y;
  }
  g.outputs({q});
  return g.graph();
}

struct Outcome {
  std::vector<std::byte> bytes;
  uint64_t scratch = 0;  // allocated
  uint64_t planned = 0;
};

Outcome run_layers(gpu::Device& device, const std::string& route, bool pool, uint32_t rows) {
  graph::PlanOptions options;
  options.sdpa_route = route;
  options.scratch_pool = pool;
  const auto model =
      must(graph::GraphModel::load(device, layers(), ops::all_operators(), {}, options));
  const auto session = must(graph::GraphSession::create(model));
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> values;
  std::vector<graph::RunInput> inputs;
  for (const uint32_t heads : {4, 2, 2}) {
    values.emplace_back(size_t{rows} * heads * 16);
    for (float& value : values.back()) {
      value = normal(random);
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.push_back(
        {{graph::Shape{1, rows, i == 0 ? 4u : 2u, 16}, 0}, std::as_bytes(std::span(values[i]))});
  }
  Outcome outcome;
  for (int i = 0; i < 2; ++i) {
    outcome.bytes = must(session->run(inputs)).front().bytes;
  }
  const auto scratch = static_cast<size_t>(gpu::MemoryKind::scratch);
  outcome.scratch = device.stats().bytes_by_kind[scratch];
  outcome.planned = session->planned_bytes()[scratch];
  return outcome;
}

TEST_CASE("scratch pool: what comes out is the same to the bit, in a fraction of the bytes") {
  gpu::Device device = open_device();
  for (const char* route : {"materialized", "split"}) {
    for (const uint32_t rows : {1u, 5u, kRows}) {
      CAPTURE(std::string(route));
      CAPTURE(rows);
      const Outcome shared = run_layers(device, route, true, rows);
      const Outcome apart = run_layers(device, route, false, rows);
      CHECK(shared.bytes == apart.bytes);
      if (rows != 5) {  // what was placed at load: it suffices
        CHECK(shared.scratch == shared.planned);
        CHECK(apart.scratch == apart.planned);
      }
      if (std::string_view(route) == "materialized") {
        CHECK(shared.planned == 4 * kRows * kRows * 4);
        CHECK(apart.planned == kLayers * shared.planned);
      }
    }
  }
}

TEST_CASE("scratch: it is there when the session is, and does not grow at the largest shape") {
  gpu::Device device = open_device();
  graph::PlanOptions options;
  options.sdpa_route = "materialized";
  const auto model =
      must(graph::GraphModel::load(device, layers(), ops::all_operators(), {}, options));
  const auto session = must(graph::GraphSession::create(model));
  CHECK(device.stats().scratch_live == 1);
  CHECK(device.stats().bytes_by_kind[static_cast<size_t>(gpu::MemoryKind::scratch)] ==
        4 * kRows * kRows * 4);
}

// Bytes of memory of this process that no file backs; 0 where the system does not tell.
uint64_t process_bytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:")) {
      kib += std::stoull(line.substr(line.find(':') + 1));
    }
  }
  return kib * 1024;
}

TEST_CASE("scratch pool: 1,000 loads and runs leave nothing behind") {
  gpu::Device device = open_device();
  const auto start = std::chrono::steady_clock::now();
  const auto load = [&] { run_layers(device, "materialized", true, 1); };
  for (int i = 0; i < 100; ++i) {
    load();
  }
  must(device.finished());
  const gpu::DeviceStats before = device.stats();
  const uint64_t process_before = process_bytes();
  for (int i = 0; i < 900; ++i) {
    load();
  }
  must(device.finished());
  CHECK(device.stats().bytes_live == before.bytes_live);
  CHECK(device.stats().bytes_peak == before.bytes_peak);
  CHECK(device.stats().buffers_live == before.buffers_live);
  CHECK(device.stats().scratch_live == 0);
  // A load has 150 KB of buffers; that of 900 would be 130 MB.
  CHECK(process_bytes() <= process_before + (8 << 20));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(120));
}

}  // namespace
}  // namespace ptero
